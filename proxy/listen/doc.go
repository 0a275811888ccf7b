// Package listen is what stands between a socket and the HTTP server: TLS whose
// certificates are read again when they change, the PROXY protocol of load
// balancers, and a bound on the connections of a listener.
//
// They are put together from the socket up, each around the one before:
//
//	l, err := net.Listen("tcp", address)
//	l = listen.Limit(l, "listen", maxConnections, metrics, log)
//	l = listen.ProxyProtocol(l, trusted, log)
//	l = proxy.Patient(l)
//	server.TLSConfig = certificates.Config() // where there are any
//	server.ServeTLS(l, "", "")               // else server.Serve(l)
//
// # Data and ownership
//
// A TLS has one immutable snapshot of its files in force, swapped whole: what is
// wrong with any of them leaves all as they were. Connections keep the snapshot
// they began with. Run polls the files in the caller's goroutine; no other
// goroutine is started by this package. A connection belongs to who accepted it;
// its PROXY header is read by the first method that needs it, so Accept never
// waits for a client.
//
// # Bounds
//
// A file may have 1 MiB. A PROXY header has to be complete within 5 s and takes at
// most 64 KiB, which its own length field bounds; a connection whose peer is not
// trusted holds 12 bytes until it is known to have none. Beyond the limit of
// connections, Accept waits until one is closed or the listener is, and clients
// wait in the kernel's queue.
//
// Logs name files, addresses, fingerprints and times of certificates, never keys.
package listen
