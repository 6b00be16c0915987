//go:build tools

// Package tools names the programs that the lab builds from this module's versions.
package tools

import (
	_ "go.etcd.io/etcd/server/v3"
)
