package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// bill writes what a program is made of, as CycloneDX JSON.
func (r *release) bill(ctx context.Context, p platform) error {
	raw := filepath.Join(r.work, "bill.json")
	c := r.command(ctx, nil, filepath.Join(r.tools, "cyclonedx-gomod"), "bin", "-json", "-std", "-licenses", "-noserial",
		"-version", r.version, "-output", raw, r.program(p))
	if err := c.Run(); err != nil {
		return err
	}
	text, err := os.ReadFile(raw)
	if err != nil {
		return err
	}
	if text, err = settle(text, r.date.Format("2006-01-02T15:04:05Z")); err != nil {
		return err
	}
	return os.WriteFile(r.result(p, ".cdx.json"), text, 0o644)
}

// settle takes out of a bill what differs from one run or machine to the next: the
// time, and the checksums of the tool that wrote it.
func settle(text []byte, date string) ([]byte, error) {
	var bill map[string]any
	if err := json.Unmarshal(text, &bill); err != nil {
		return nil, fmt.Errorf("read bill of materials: %w", err)
	}
	about, ok := bill["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("bill of materials has %T as metadata: want an object", bill["metadata"])
	}
	about["timestamp"] = date
	forgetHashes(about["tools"])
	return json.MarshalIndent(bill, "", " ")
}

// forgetHashes removes all members of that name.
func forgetHashes(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			forgetHashes(e)
		}
	case map[string]any:
		delete(v, "hashes")
		for _, e := range v {
			forgetHashes(e)
		}
	}
}
