package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// event is one of a watch, read.
type event struct {
	Type  string
	slice endpointSlice // of a bookmark, only its version
}

// watch follows a service from a version on, until the API ends it, which is no
// error, or ctx does.
func (a *api) watch(ctx context.Context, namespace, service, version string, take func(*event) error) error {
	ctx, cancel := context.WithTimeout(ctx, watchFor+watchSlack)
	defer cancel()
	body, err := a.get(ctx, namespace, service, url.Values{
		"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version},
		"timeoutSeconds": {strconv.Itoa(int(jitter(watchFor).Seconds()))},
	})
	if err != nil {
		return fmt.Errorf("watch the slices of %s: %w", service, err)
	}
	defer body.Close()
	if err := readEvents(body, take); err != nil {
		return fmt.Errorf("watch the slices of %s: %w", service, err)
	}
	return nil
}

// readEvents reads a watch's events to its end.
func readEvents(r io.Reader, take func(*event) error) error {
	limit := &rationed{r: r, left: maxEventBytes}
	d := json.NewDecoder(limit)
	for {
		var raw struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := d.Decode(&raw); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		e, err := readEvent(raw.Type, raw.Object)
		if err == nil {
			err = take(e)
		}
		if err != nil {
			return err
		}
		limit.left = maxEventBytes
	}
}

func readEvent(kind string, object []byte) (*event, error) {
	if kind == "ERROR" {
		var status apiStatus
		if err := json.Unmarshal(object, &status); err != nil {
			return nil, fmt.Errorf("read an error event: %w", err)
		}
		if status.Code == http.StatusGone || status.Reason == "Expired" || status.Reason == "Gone" {
			return nil, errGone
		}
		return nil, fmt.Errorf("the API ended it with %d: %.300s", status.Code, status.Message)
	}
	e := &event{Type: kind}
	if err := json.Unmarshal(object, &e.slice); err != nil {
		return nil, fmt.Errorf("read a slice: %w", err)
	}
	if e.slice.Metadata.Name == "" && kind != "BOOKMARK" {
		return nil, errors.New("a slice without a name")
	}
	return e, nil
}

// rationed ends a stream whose next event is too long.
type rationed struct {
	r    io.Reader
	left int
}

func (l *rationed) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("an event of more than %d bytes", maxEventBytes)
	}
	n, err := l.r.Read(b[:min(len(b), l.left)])
	l.left -= n
	return n, err
}
