//go:build tools

// Package tools names the programs that the lab builds from this module's versions.
package tools

import (
	_ "github.com/moby/buildkit/cmd/buildctl"
	_ "github.com/moby/buildkit/cmd/buildkitd"
)
