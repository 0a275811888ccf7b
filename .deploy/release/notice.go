package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// noticeFile has the licences of everything that the programs are made of.
const noticeFile = "NOTICE"

// module is a part of a program that somebody else made.
type module struct{ path, version string }

// modules are those of all platforms' programs, as the programs themselves say.
func (r *release) modules() ([]module, error) {
	var all []module
	for _, p := range platforms {
		info, err := buildinfo.ReadFile(r.program(p))
		if err != nil {
			return nil, err
		}
		for _, d := range info.Deps {
			if d.Replace != nil {
				d = d.Replace
			}
			all = append(all, module{d.Path, d.Version})
		}
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.path+"@"+a.version, b.path+"@"+b.version) })
	return slices.Compact(all), nil
}

// notice writes the licences of all modules, and of Go's own library, one after
// the other. A module without any can't be given to others, and is an error.
func (r *release) notice(ctx context.Context) error {
	list, err := r.modules()
	if err != nil {
		return err
	}
	goroot, err := lines(r.command(ctx, nil, "go", "env", "GOROOT", "GOVERSION"))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	text.WriteString("KVCA is licensed under the Apache License 2.0, see LICENSE. It is made of the\nfollowing, under the licences that follow each.\n")
	if err := licences(&text, "the Go standard library, "+goroot[1], goroot[0]); err != nil {
		return err
	}
	for _, m := range list {
		dir, err := r.source(ctx, m)
		if err != nil {
			return err
		}
		if err := licences(&text, m.path+" "+m.version, dir); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(r.work, noticeFile), text.Bytes(), 0o644)
}

// source is the folder with a module's source.
func (r *release) source(ctx context.Context, m module) (string, error) {
	out, err := r.command(ctx, nil, "go", "mod", "download", "-json", m.path+"@"+m.version).Output()
	if err != nil {
		return "", fmt.Errorf("download %s@%s: %w", m.path, m.version, err)
	}
	var answer struct{ Dir string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", fmt.Errorf("download %s@%s: %w", m.path, m.version, err)
	}
	return answer.Dir, nil
}

// licences appends what a folder says of its licence.
func licences(text *bytes.Buffer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := 0
	for _, e := range entries {
		if e.IsDir() || !isLicence(e.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(text, "\n%s\n%s (%s)\n%s\n\n%s\n", strings.Repeat("=", 80), name, e.Name(), strings.Repeat("-", 80),
			bytes.TrimSpace(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))))
		found++
	}
	if found == 0 {
		return fmt.Errorf("%s has no licence in %s: want a file such as LICENSE there, or do without it", name, dir)
	}
	return nil
}

// isLicence is whether a file of that name says under what terms its folder is.
func isLicence(name string) bool {
	stem, ext, _ := strings.Cut(strings.ToLower(name), ".")
	stem, _, _ = strings.Cut(stem, "-")
	return slices.Contains([]string{"license", "licence", "copying", "notice", "patents", "unlicense"}, stem) &&
		slices.Contains([]string{"", "txt", "md", "libyaml"}, ext)
}
