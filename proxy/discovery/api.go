package discovery

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount/"

	apiWait       = 15 * time.Second // for a page, and for a watch to begin
	watchFor      = 5 * time.Minute  // the API ends a watch after that
	watchSlack    = 30 * time.Second
	pageItems     = 100
	maxPages      = 20
	maxPageBytes  = 8 << 20
	maxEventBytes = 4 << 20
	maxErrorBytes = 64 << 10
)

// Kubernetes says where the API is and who asks it. What is empty is as in a pod.
type Kubernetes struct {
	// API is its base URL. Default: https, at KUBERNETES_SERVICE_HOST and _PORT.
	API string
	// TokenFile, CAFile and NamespaceFile are the service account's.
	TokenFile, CAFile, NamespaceFile string

	dial func(ctx context.Context, network, address string) (net.Conn, error) // of tests
}

func (k Kubernetes) withDefaults() Kubernetes {
	k.TokenFile = cmp.Or(k.TokenFile, accountFolder+"token")
	k.CAFile = cmp.Or(k.CAFile, accountFolder+"ca.crt")
	k.NamespaceFile = cmp.Or(k.NamespaceFile, accountFolder+"namespace")
	return k
}

// errGone says that the API has forgotten a resourceVersion: list again.
var errGone = errors.New("the resource version is gone")

// api asks the API. It belongs to one goroutine.
type api struct {
	Kubernetes
	transport *http.Transport
	ca        []byte // what the transport trusts
}

func (a *api) close() {
	if a.transport != nil {
		a.transport.CloseIdleConnections()
	}
}

// namespace is the pod's own.
func (a *api) namespace() (string, error) {
	text, err := readBounded(a.NamespaceFile, maxKeyBytes)
	if err != nil {
		return "", fmt.Errorf("not in a pod (%w): name the namespace, as in k8s://NAMESPACE/SERVICE", err)
	}
	name := strings.TrimSpace(string(text))
	if !isLabel(name) {
		return "", fmt.Errorf("%s holds no namespace: %.80q", a.NamespaceFile, name)
	}
	return name, nil
}

func (a *api) base() (string, error) {
	if a.API != "" {
		return strings.TrimRight(a.API, "/"), nil
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return "", errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: run in a pod with a service account")
	}
	return "https://" + net.JoinHostPort(host, port), nil
}

// connect makes the transport, anew where the CA has changed.
func (a *api) connect(base string) error {
	var ca []byte
	if strings.HasPrefix(base, "https:") {
		var err error
		if ca, err = readBounded(a.CAFile, maxFileBytes); err != nil {
			return fmt.Errorf("read the API's CA: %w", err)
		}
	}
	if a.transport != nil && bytes.Equal(ca, a.ca) {
		return nil
	}
	a.close()
	a.transport = &http.Transport{
		DialContext: a.dial, TLSHandshakeTimeout: apiWait, ResponseHeaderTimeout: apiWait,
		MaxResponseHeaderBytes: maxErrorBytes, IdleConnTimeout: time.Minute,
	}
	if a.dial == nil {
		a.transport.DialContext = (&net.Dialer{Timeout: apiWait}).DialContext
	}
	if ca != nil {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			a.transport = nil
			return fmt.Errorf("%s holds no certificate: want PEM", a.CAFile)
		}
		a.transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	}
	a.ca = ca
	return nil
}

// get asks for slices of a service. The token is read each time, since it rotates,
// and goes over TLS only. A redirect is not followed: it would carry it elsewhere.
func (a *api) get(ctx context.Context, namespace, service string, more url.Values) (io.ReadCloser, error) {
	base, err := a.base()
	if err == nil {
		err = a.connect(base)
	}
	if err != nil {
		return nil, err
	}
	more.Set("labelSelector", "kubernetes.io/service-name="+service)
	path := base + "/apis/discovery.k8s.io/v1/namespaces/" + namespace + "/endpointslices?" + more.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "kvca")
	if strings.HasPrefix(base, "https:") {
		token, err := readKey(a.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the service account's token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := a.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, refused(resp, namespace)
	}
	return resp.Body, nil
}

// apiStatus is an error as the API writes it.
type apiStatus struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func refused(resp *http.Response, namespace string) error {
	var status apiStatus
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes)) // what is missing is not told
	_ = json.Unmarshal(text, &status)
	switch resp.StatusCode {
	case http.StatusGone:
		return errGone
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the API answers %d (%.300s): give the pod's service account list and watch on endpointslices of discovery.k8s.io in namespace %s", resp.StatusCode, status.Message, namespace)
	}
	return fmt.Errorf("the API answers %d (%.300s): want 200", resp.StatusCode, status.Message)
}

// list reads all slices of a service, page by page, and the version they are of.
func (a *api) list(ctx context.Context, namespace, service string) (map[string]*endpointSlice, string, error) {
	all, next := make(map[string]*endpointSlice), ""
	for range maxPages {
		var page struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
				Continue        string `json:"continue"`
			} `json:"metadata"`
			Items []endpointSlice `json:"items"`
		}
		if err := a.page(ctx, namespace, service, next, &page); err != nil {
			return nil, "", fmt.Errorf("list the slices of %s: %w", service, err)
		}
		for i := range page.Items {
			if all[page.Items[i].Metadata.Name] = &page.Items[i]; len(all) > maxSlices {
				return nil, "", fmt.Errorf("service %s has more than %d slices", service, maxSlices)
			}
		}
		if next = page.Metadata.Continue; next == "" {
			if page.Metadata.ResourceVersion == "" {
				return nil, "", fmt.Errorf("list the slices of %s: the answer has no resourceVersion", service)
			}
			return all, page.Metadata.ResourceVersion, nil
		}
	}
	return nil, "", fmt.Errorf("list the slices of %s: more than %d pages", service, maxPages)
}

func (a *api) page(ctx context.Context, namespace, service, next string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, apiWait)
	defer cancel()
	query := url.Values{"limit": {fmt.Sprint(pageItems)}}
	if next != "" {
		query.Set("continue", next)
	}
	body, err := a.get(ctx, namespace, service, query)
	if err != nil {
		return err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxPageBytes+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxPageBytes:
		return fmt.Errorf("a page of more than %d bytes", maxPageBytes)
	}
	return json.Unmarshal(text, into)
}
