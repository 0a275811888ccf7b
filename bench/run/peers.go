package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"kvca/bench/gateway"
)

// runPeersInstall installs each peer, and goes on where one can't be. nginx comes
// with the system's own packages.
func runPeersInstall(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("peers-install", flag.ContinueOnError)
	dir := f.String("dir", "bench", "folder that takes the environments")
	if err := f.Parse(args); err != nil {
		return err
	}
	env := &gateway.Env{Venvs: absolute(filepath.Join(*dir, ".venv"))}
	for _, peer := range gateway.Peers() {
		if err := gateway.Install(ctx, peer, env.Venvs, os.Stderr); err != nil {
			fmt.Printf("%s: %v\n", peer, err)
			continue
		}
		fmt.Printf("%s: %s\n", peer, gateway.Version(ctx, peer, env))
	}
	fmt.Println("nginx: install it with the system's package manager (nginx-light will do)")
	return ctx.Err()
}
