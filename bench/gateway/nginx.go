package gateway

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const nginxHead = `worker_processes auto;
daemon off;
pid %[1]s/nginx.pid;
error_log %[1]s/nginx-error.log crit;
events { worker_connections 4096; }
http {
  access_log off;
  client_max_body_size 64m;
  client_body_buffer_size 1m;
  client_body_temp_path %[1]s/nginx-body;
  proxy_temp_path %[1]s/nginx-proxy;
  fastcgi_temp_path %[1]s/nginx-fastcgi;
  uwsgi_temp_path %[1]s/nginx-uwsgi;
  scgi_temp_path %[1]s/nginx-scgi;
  keepalive_requests 100000000;
  upstream backends {
    least_conn;
    keepalive 256;
    keepalive_requests 100000000;
`

const nginxTail = `  }
  server {
    listen %s;
    location / {
      proxy_pass http://backends;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 600s;
    }
  }
}
`

// nginx proxies without looking at anything: least connections, connections to
// backends kept, chunks passed on as they come.
func nginx(e *Env, port, _ int) ([]string, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		return nil, ErrNotInstalled
	}
	var b strings.Builder
	if os.Geteuid() == 0 {
		b.WriteString("user root;\n") // the workers write below Dir
	}
	fmt.Fprintf(&b, nginxHead, e.Dir)
	for _, backend := range e.Backends {
		fmt.Fprintf(&b, "    server %s;\n", strings.TrimPrefix(backend, "http://"))
	}
	fmt.Fprintf(&b, nginxTail, local(port))
	path := filepath.Join(e.Dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return nil, fmt.Errorf("configure nginx: %w", err)
	}
	return []string{program, "-e", filepath.Join(e.Dir, "nginx-error.log"), "-p", e.Dir, "-c", path}, nil
}
