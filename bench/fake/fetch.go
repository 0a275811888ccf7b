package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Fetch asks any backend of a fleet in another process for the fleet's Stats.
func Fetch(ctx context.Context, baseURL string) (Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, baseURL+"/fake/stats", nil)
	if err != nil {
		return Stats{}, fmt.Errorf("ask %s for stats: %w", baseURL, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Stats{}, fmt.Errorf("ask %s for stats: %w", baseURL, err)
	}
	defer resp.Body.Close()
	var s Stats
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return Stats{}, fmt.Errorf("read stats of %s: %w", baseURL, err)
	}
	return s, nil
}

// Lie tells the backend at baseURL what to answer from now on.
func Lie(ctx context.Context, baseURL string, g Garbage) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, baseURL+"/fake/garbage?kind="+g.String(), nil)
	if err != nil {
		return fmt.Errorf("switch %s to %v: %w", baseURL, g, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("switch %s to %v: %w", baseURL, g, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("switch %s to %v: status %d", baseURL, g, resp.StatusCode)
	}
	return nil
}
