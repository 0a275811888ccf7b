package secret

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kvca/state/virtualtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	older   = "an older secret of the cluster"
	newer   = "a newer secret of the cluster"
	foreign = "a secret of another cluster"
)

func write(t *testing.T, path string, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, content string) *Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	write(t, path, content)
	s, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// configs is what both kinds of keys give.
type configs interface {
	Server() *tls.Config
	Client() *tls.Config
}

// sockets are two ends that, unlike a pipe's, may both write at once.
func sockets(t *testing.T) (a, b net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if a, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// connect says what each end of a connection makes of the other.
func connect(t *testing.T, client, server configs) (atClient, atServer error) {
	t.Helper()
	a, b := sockets(t)
	done := make(chan error)
	go func() {
		s := tls.Server(b, server.Server())
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("x"))
		}
		b.Close()
		done <- err
	}()
	c := tls.Client(a, client.Client())
	_, atClient = io.ReadFull(c, make([]byte, 1))
	a.Close()
	return atClient, <-done
}

func TestOnlyHoldersOfASecretConnect(t *testing.T) {
	for _, c := range []struct {
		name, client, server string
		ok                   bool
	}{
		{"the same", older, older, true},
		{"another", older, foreign, false},
		{"rotation begins at the server", older, older + "\n" + newer, true},
		{"rotation begins at the client", older + "\n" + newer, older, true},
		{"the new one first", newer + "\n" + older, older + "\n" + newer, true},
		{"old one taken away at the server", newer + "\n" + older, newer, true},
		{"old one taken away too early", newer, older, false},
		{"added, but not yet there", newer + "\n" + older, older, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			atClient, atServer := connect(t, open(t, c.client), open(t, c.server))
			if c.ok != (atClient == nil) || c.ok != (atServer == nil) {
				t.Errorf("client: %v, server: %v", atClient, atServer)
			}
		})
	}
}

func TestPeerWithoutCertificateIsRefused(t *testing.T) {
	a, b := sockets(t)
	defer a.Close()
	done := make(chan error)
	go func() {
		done <- tls.Server(b, open(t, older).Server()).Handshake()
		b.Close()
	}()
	tls.Client(a, &tls.Config{InsecureSkipVerify: true}).Read(make([]byte, 1))
	if err := <-done; err == nil {
		t.Error("a client without a certificate got in")
	}
}

func TestOlderTLSIsRefused(t *testing.T) {
	s := open(t, older)
	cfg := s.Client().Clone()
	cfg.MinVersion, cfg.MaxVersion = 0, tls.VersionTLS12
	if atClient, _ := connect(t, fixed{cfg}, s); atClient == nil {
		t.Error("TLS 1.2 was spoken")
	}
}

type fixed struct{ c *tls.Config }

func (f fixed) Client() *tls.Config { return f.c }
func (f fixed) Server() *tls.Config { return f.c }

func TestFileIsReadAsDocumented(t *testing.T) {
	for _, c := range []struct {
		name, content string
		secrets       int
		fault         string
	}{
		{"one", older, 1, ""},
		{"comments, blank lines, spaces, repetition", "# first\r\n\r\n  " + older + "  \r\n" + newer + "\n" + older, 2, ""},
		{"empty", "\n# nothing\n", 0, "no secret"},
		{"short", older + "\nshort", 0, "line 2: a secret of 5 bytes"},
		{"two faults", "short\n" + strings.Repeat("x", 1025), 0, "line 2: a secret of 1025 bytes"},
		{"too many", "0123456789abcdef0\n0123456789abcdef1\n0123456789abcdef2\n0123456789abcdef3\n0123456789abcdef4\n0123456789abcdef5\n0123456789abcdef6\n0123456789abcdef7\n0123456789abcdef8", 0, "9 secrets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			secrets, err := parse([]byte(c.content))
			if c.fault == "" {
				if err != nil || len(secrets) != c.secrets {
					t.Errorf("%d secrets, %v", len(secrets), err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), "short ") {
				t.Errorf("got %v, want %q", err, c.fault)
			}
		})
	}
}

// Keys are for ever: nodes of two versions must derive the same.
func TestDerivedKeysAreStable(t *testing.T) {
	s := open(t, "0123456789abcdef")
	primary, all := s.GossipKeys()
	identity, err := identityKey([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	got := hex.EncodeToString(primary) + " " + hex.EncodeToString(identity.Public().(ed25519.PublicKey))
	const want = "a41c31130c9c0ec93b78f6b16dfd2dbdddb08ddd92f2eeae6bbb1b0244b52443 0e3ea24a66365127377c08a5ae893ae179571ee265275d19f1238c5cc9bb84e5"
	if got != want || len(all) != 1 || !bytes.Equal(all[0], primary) {
		t.Errorf("got %s\nwant %s", got, want)
	}
	a, _ := certificate(identity)
	b, _ := certificate(identity)
	if !bytes.Equal(a.Certificate[0], b.Certificate[0]) {
		t.Error("a secret gives two certificates")
	}
}

func TestChangedFileComesIntoForce(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "secret")
		write(t, path, older)
		var log bytes.Buffer
		s, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		changes := 0
		go s.Run(t.Context(), func() { changes++ })
		before, _ := s.GossipKeys()
		after := func(content string) []byte {
			if content == "" {
				os.Remove(path)
			} else {
				write(t, path, content)
			}
			time.Sleep(10 * pollEvery)
			synctest.Wait()
			primary, _ := s.GossipKeys()
			return primary
		}
		for _, bad := range []string{"short", "", strings.Repeat("#", maxFile+1)} {
			if !bytes.Equal(after(bad), before) || changes != 0 {
				t.Fatal("a bad file changed the keys")
			}
		}
		if n := strings.Count(log.String(), "ERROR"); n != 2 { // no good; not readable, twice in a row
			t.Errorf("%d complaints:\n%s", n, log.String())
		}
		if !bytes.Equal(after(older+"\n"+newer), before) || changes != 1 {
			t.Error("another secret was added, the first must stay in use")
		}
		if bytes.Equal(after(newer), before) || changes != 2 {
			t.Error("the new secret is not in use")
		}
		if strings.Contains(log.String(), older) || strings.Contains(log.String(), newer) {
			t.Error("a secret is in the log")
		}
	})
}

func TestHalfWrittenFileIsNotTaken(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "secret")
		write(t, path, older)
		s, _ := Open(path, nil)
		go s.Run(t.Context(), nil)
		write(t, path, newer[:20])
		time.Sleep(pollEvery + time.Second)
		write(t, path, newer)
		time.Sleep(pollEvery)
		synctest.Wait()
		old, _ := open(t, older).GossipKeys()
		if now, _ := s.GossipKeys(); !bytes.Equal(now, old) {
			t.Error("a content that was there for one look is in force")
		}
		time.Sleep(pollEvery)
		synctest.Wait()
		want, _ := open(t, newer).GossipKeys()
		if now, _ := s.GossipKeys(); !bytes.Equal(now, want) {
			t.Error("the whole content is not in force")
		}
	})
}

func TestFileThatOthersCanReadIsWarnedOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	write(t, path, older)
	os.Chmod(path, 0o644)
	var log bytes.Buffer
	if _, err := Open(path, slog.New(slog.NewTextHandler(&log, nil))); err != nil || !strings.Contains(log.String(), "WARN") {
		t.Errorf("%v, log: %s", err, log.String())
	}
}

// An authority makes certificates for tests.
type authority struct {
	t    *testing.T
	dir  string
	key  ed25519.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	_, a.key, _ = ed25519.GenerateKey(rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(name, kind string, der []byte) {
	write(a.t, a.path(name), string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

func (a *authority) issue(usages ...x509.ExtKeyUsage) {
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: usages,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	pkcs, _ := x509.MarshalPKCS8PrivateKey(key)
	a.write("node.pem", "CERTIFICATE", der)
	a.write("node.key", "PRIVATE KEY", pkcs)
}

func (a *authority) open() (*Certs, error) {
	return Certificates(a.path("node.pem"), a.path("node.key"), a.path("ca.pem"), nil)
}

var both = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}

func TestCertificatesOfOneAuthorityConnect(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	open := func(a *authority, usages ...x509.ExtKeyUsage) *Certs {
		a.issue(usages...)
		c, err := a.open()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b, stranger := open(ours, both...), open(ours), open(theirs, both...)
	if atClient, atServer := connect(t, a, b); atClient != nil || atServer != nil {
		t.Errorf("of one authority: %v, %v", atClient, atServer)
	}
	if atClient, _ := connect(t, a, stranger); atClient == nil {
		t.Error("a server of another authority was accepted")
	}
	if _, atServer := connect(t, stranger, a); atServer == nil {
		t.Error("a client of another authority was accepted")
	}
	if _, atServer := connect(t, openSecret(t), a); atServer == nil {
		t.Error("a client with a secret's identity was accepted")
	}
}

func openSecret(t *testing.T) *Source { return open(t, older) }

func TestCertificateThatPeersWouldRefuseIsAFault(t *testing.T) {
	a := newAuthority(t)
	a.issue(x509.ExtKeyUsageServerAuth)
	if _, err := a.open(); err == nil || !strings.Contains(err.Error(), "client") {
		t.Errorf("got %v", err)
	}
}

func TestChangedCertificatesComeIntoForce(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		a.issue(both...)
		c, err := a.open()
		if err != nil {
			t.Fatal(err)
		}
		go c.Run(t.Context())
		before := c.Server()
		write(t, a.path("node.key"), "of another certificate")
		time.Sleep(10 * pollEvery)
		if synctest.Wait(); c.Server() != before {
			t.Error("a key that does not fit changed the configuration")
		}
		a.issue(both...)
		time.Sleep(10 * pollEvery)
		if synctest.Wait(); c.Server() == before {
			t.Error("the new certificate is not in force")
		}
	})
}
