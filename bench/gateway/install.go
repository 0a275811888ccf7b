package gateway

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"
)

// installTime bounds the installation of one peer.
const installTime = 5 * time.Minute

// Install installs one of Peers from the Python package index into an
// environment of its own below venvs. Only built packages are taken.
func Install(ctx context.Context, peer, venvs string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	dir := filepath.Join(venvs, peer)
	for _, args := range [][]string{
		{"python3", "-m", "venv", dir},
		{
			filepath.Join(dir, "bin", "pip"), "install", "--quiet", "--upgrade", "--disable-pip-version-check",
			"--only-binary", ":all:", peer,
		},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("install %s: %w", peer, err)
		}
	}
	return nil
}
