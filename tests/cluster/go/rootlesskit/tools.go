//go:build tools

// Package tools names the programs that the lab builds from this module's versions.
package tools

import (
	_ "github.com/rootless-containers/rootlesskit/v3/cmd/rootlesskit"
)
