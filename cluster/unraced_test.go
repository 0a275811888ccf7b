//go:build !race

package cluster

const raced = false
