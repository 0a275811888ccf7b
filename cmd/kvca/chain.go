package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"kvca/state/cbr"
	"kvca/state/chain"
)

// maxInput bounds a request that is read from a file or standard input.
const maxInput = cbr.MaxBody

func chainCommand() *cli.Command {
	return &cli.Command{
		Name:  "chain",
		Usage: "name the blocks of the request on standard input",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "endpoint", Value: cbr.Chat.String(), Usage: "`PATH` that the request is for"},
			&cli.IntFlag{Name: "block-size", Value: 512, Usage: "size of a block in `BYTES`, a multiple of 8"},
			&cli.StringFlag{Name: "hash-key", Usage: "secret key of the hashes, `HEX32`: 32 hex digits", DefaultText: "that of the default cluster name"},
		},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			body, err := readInput(c.App.Reader)
			if err != nil {
				return err
			}
			report, err := chainOf(c.String("endpoint"), c.Int("block-size"), c.String("hash-key"), body)
			if err != nil {
				return fmt.Errorf("chain: %w", err)
			}
			return json.NewEncoder(c.App.Writer).Encode(report)
		},
	}
}

// chainReport is the output of `kvca chain`; scripts rely on its names.
type chainReport struct {
	Endpoint  string   `json:"endpoint"`
	Phase     string   `json:"phase"`
	CBRBytes  int64    `json:"cbr_bytes"`
	BlockSize int      `json:"block_size"`
	Blocks    int      `json:"blocks"`
	Hashes    []string `json:"hashes"`
}

func chainOf(path string, blockSize int, hexKey string, body []byte) (*chainReport, error) {
	endpoint := cbr.EndpointOf(path)
	if endpoint == cbr.Other {
		return nil, fmt.Errorf("--endpoint: %q has no chain: want one of %s", path, strings.Join(chainEndpoints(), ", "))
	}
	if err := chain.CheckBlockSize(blockSize); err != nil {
		return nil, fmt.Errorf("--block-size: %w", err)
	}
	key := chain.DeriveKey(chain.DefaultClusterName)
	if hexKey != "" {
		var err error
		if key, err = chain.ParseKey(hexKey); err != nil {
			return nil, fmt.Errorf("--hash-key: %w", err)
		}
	}
	var h chain.Hasher
	h.Reset(key, blockSize)
	request, err := cbr.New().Encode(endpoint, body, nil, &h)
	if err != nil {
		return nil, err
	}
	return newChainReport(&request, blockSize, h.Hashes()), nil
}

// newChainReport judges the phase as routing does: without a complete block, a
// request is a bootstrap one whatever its roles are.
func newChainReport(r *cbr.Request, blockSize int, hashes []uint64) *chainReport {
	report := &chainReport{
		Endpoint: r.Endpoint.String(), Phase: r.Phase.String(), CBRBytes: r.Bytes,
		BlockSize: blockSize, Blocks: len(hashes), Hashes: make([]string, len(hashes)),
	}
	for i, hash := range hashes {
		report.Hashes[i] = fmt.Sprintf("%016x", hash)
	}
	if len(hashes) == 0 {
		report.Phase = cbr.Bootstrap.String()
	}
	return report
}

func chainEndpoints() []string {
	paths := []string{cbr.Chat.String(), cbr.Completions.String(), cbr.Responses.String(), cbr.Messages.String()}
	slices.Sort(paths)
	return paths
}

// readInput reads a request, bounded.
func readInput(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the request: %w", err)
	case len(body) > maxInput:
		return nil, fmt.Errorf("read the request: it is longer than %s", showSize(maxInput))
	}
	return body, nil
}
