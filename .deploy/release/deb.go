package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pack makes a Debian package, by .deploy/debian/nfpm.yaml.
func (r *release) pack(ctx context.Context, p platform) error {
	stage := filepath.Dir(r.program(p))
	if err := r.stage(stage); err != nil {
		return err
	}
	version := r.debVersion()
	c := r.command(ctx, []string{
		"STAGE=" + stage, "ARCH=" + p.arch, "DEB_VERSION=" + version,
		"SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.date.Unix(), 10),
	}, filepath.Join(r.tools, "nfpm"), "package", "--config", ".deploy/debian/nfpm.yaml", "--packager", "deb",
		"--target", filepath.Join(r.out, fmt.Sprintf("kvca_%s_%s.deb", version, p.arch)))
	return c.Run()
}

// debVersion is the version as Debian orders them: one that does not begin with a
// digit, as a bare commit, is older than any that was released.
func (r *release) debVersion() string {
	v := strings.TrimPrefix(r.version, "v")
	if v == "" || v[0] < '0' || v[0] > '9' || !strings.Contains(v, ".") {
		return "0~" + r.date.Format("20060102.150405") + "." + strings.ReplaceAll(v, "-", ".")
	}
	// Debian takes what is behind a hyphen for its own revision.
	return strings.ReplaceAll(v, "-", "+")
}

// stage lays out what a package has beside the program.
func (r *release) stage(dir string) error {
	for _, s := range shells {
		if err := copyFile(filepath.Join(r.work, s.file), filepath.Join(dir, s.file)); err != nil {
			return err
		}
	}
	if err := compress(filepath.Join(r.root, "README.md"), filepath.Join(dir, "README.md.gz")); err != nil {
		return err
	}
	if err := compress(filepath.Join(r.work, noticeFile), filepath.Join(dir, "NOTICE.gz")); err != nil {
		return err
	}
	if err := compress(filepath.Join(r.root, "CHANGELOG.md"), filepath.Join(dir, "changelog.gz")); err != nil {
		return err
	}
	if err := r.copyright(filepath.Join(dir, "copyright")); err != nil {
		return err
	}
	return r.unit(filepath.Join(dir, "kvca.service"))
}

// unit writes the service as a package has it: the program is where packages put
// programs, and it runs as the package's user, who can own secrets.
func (r *release) unit(to string) error {
	text, err := os.ReadFile(filepath.Join(r.root, ".deploy", "kvca.service"))
	if err != nil {
		return err
	}
	out := string(text)
	for _, change := range [][2]string{
		{"/usr/local/bin/kvca", "/usr/bin/kvca"},
		{"\nDynamicUser=yes\n", "\nUser=kvca\nGroup=kvca\nRemoveIPC=yes\n"},
		{"# KVCA as a service. Put the program into /usr/local/bin, the settings into\n# /etc/kvca/kvca.yaml", "# KVCA as a service. The settings are in /etc/kvca/kvca.yaml"},
	} {
		if !strings.Contains(string(text), change[0]) {
			return fmt.Errorf("kvca.service lacks %q: want it, or another change for the package", change[0])
		}
		out = strings.ReplaceAll(out, change[0], change[1])
	}
	return os.WriteFile(to, []byte(out), 0o644)
}

// copyright writes the package's file of that name.
func (r *release) copyright(to string) error {
	return os.WriteFile(to, []byte(`Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: kvca
Comment: The program is linked with libraries under licences of their own, all of
 which are in NOTICE.gz beside this file.

Files: *
Copyright: the KVCA authors
License: Apache-2.0
 On Debian systems the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
`), 0o644)
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}
