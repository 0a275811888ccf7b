package proxy

import (
	"log/slog"
	"net/http"
	"time"
)

// Bounds on a client's connection. There is none on the whole of an answer,
// since a stream may last for an hour; Config.WriteIdle bounds each write.
const (
	headerTimeout  = 10 * time.Second
	keepAlive      = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	maxStreams     = 1000 // of one HTTP/2 connection
	// writeIdle is how long a client of HTTP/2 may take nothing at all from its
	// connection. A stream's own deadline frees the stream only, and a client that
	// sends something now and then is never pinged.
	writeIdle = time.Minute
)

// NewHTTPServer makes the server for a listener, of clients or of admins: HTTP/1.1
// and HTTP/2, with and without TLS. The caller serves it, on a Patient listener, and
// shuts it down.
func NewHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       keepAlive,
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: 30 * time.Second, WriteByteTimeout: writeIdle},
		// What net/http has to say is about clients that misbehave.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
