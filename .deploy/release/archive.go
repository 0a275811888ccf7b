package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// sumsFile has the checksums of all other results.
const sumsFile = "SHA256SUMS"

// member is one file of an archive.
type member struct {
	name string // in the archive
	from string
	mode int64
}

// members are an archive's files, in their order.
func (r *release) members(p platform) []member {
	list := []member{{"kvca", r.program(p), 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		list = append(list, member{name, filepath.Join(r.root, name), 0o644})
	}
	list = append(list, member{noticeFile, filepath.Join(r.work, noticeFile), 0o644})
	for _, s := range shells {
		list = append(list, member{"completions/" + s.file, filepath.Join(r.work, s.file), 0o644})
	}
	if p.os == "linux" {
		for _, name := range []string{"kvca.service", "kvca.yaml"} {
			list = append(list, member{name, filepath.Join(r.root, ".deploy", name), 0o644})
		}
	}
	return list
}

// result is the path of something that is given to others.
func (r *release) result(p platform, ending string) string {
	return filepath.Join(r.out, fmt.Sprintf("kvca_%s_%s_%s%s", r.version, p.os, p.arch, ending))
}

// archive packs the program and what belongs to it.
func (r *release) archive(p platform) error {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	folder := fmt.Sprintf("kvca_%s_%s_%s/", r.version, p.os, p.arch)
	for _, m := range r.members(p) {
		content, err := os.ReadFile(m.from)
		if err != nil {
			return err
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: folder + m.name, Size: int64(len(content)), Mode: m.mode, ModTime: r.date,
			Uname: "root", Gname: "root", Format: tar.FormatUSTAR,
		}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(content); err != nil {
			return err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return err
	}
	return os.WriteFile(r.result(p, ".tar.gz"), packed.Bytes(), 0o644)
}

// compress writes a file's gzip, without a name or a time in it.
func compress(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(content); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, packed.Bytes(), 0o644)
}

// sums writes the checksums of all results, as sha256sum -c reads them.
func (r *release) sums() error {
	results, err := filepath.Glob(filepath.Join(r.out, "kvca_*"))
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, name := range results {
		sum, err := checksum(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sum, filepath.Base(name))
	}
	return os.WriteFile(filepath.Join(r.out, sumsFile), []byte(text.String()), 0o644)
}

func checksum(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
