// Package proxy is the way of a request: from a client's headers to the last byte of
// the answer. It serves the client API and the admin API; what it decides with, and
// what it sends with, are other packages'.
//
// # A request's way
//
// An exchange is one request. It belongs to the goroutine that net/http serves it on,
// and passes stations; each ends it by an error or by having answered:
//
//	find          the endpoint of the path                            endpoint.go
//	authenticate  whose key it has                                    caller.go, tenant/
//	read          the body, within its bounds                         body.go
//	steer         fields that steer engines go, a cache salt comes    steering.go, steer/
//	identify      model and canonical bytes, cut into a chain         identify.go, form.go
//	admit         the tenant's limits                                 admit.go, tenant/
//	forward       the wait for a turn, what the precise index knows,  turn.go, knowledge.go,
//	              the decision, attempts, the answer                  forward.go, deliver.go
//
// The body is named after it was edited: what is hashed is what backends are sent.
// Until the first byte of an answer nothing has gone to the client, so that the request
// may move on to another backend; from then on a watch reads along, delays nothing,
// and learns what the answer says about its prompt. Whatever happens, a panic included,
// exchange.end gives back what is held: the ticket, the permit, the turn, the body.
// Then the request's record goes to those who look on (record/): metrics, the page
// (live/), the access log (accesslog/), the trace (trace/).
//
// WebSockets (socket.go) pass the same stations; after the backend's 101 the handler's
// goroutine copies one way and a second one, which it waits for, the other.
//
// # Configuration
//
// What is in force is one immutable value, replaced whole (Proxy.Reconfigure). An
// exchange goes by the one that it began with, to its end.
//
// # Who may touch what
//
// A Proxy's methods may be called from any goroutine; what exchanges share is atomic or
// has a lock of its own, never held while anything waits: the budget of bodies, the
// budget of retries, the pins of responses, the sockets that are open. The pool
// (backend/), the router and the tenants' queue and limits guard themselves.
//
// # Bounds
//
//   - headers: 64 KiB, 10 s from the first byte; 1,000 streams of an HTTP/2 connection;
//   - a body: Config.MaxBodyBytes, and all bodies together Config.BodyBudget; a pause of
//     UploadIdle, UploadLimit in all;
//   - what is kept of an answer while it passes: a line of 256 KiB, the last 16 KiB;
//   - each write to a client: WriteIdle;
//   - attempts: Config.Attempts, and retries a fifth of the traffic;
//   - sockets: MaxSockets, those that are being opened among them; quiet for SocketIdle
//     at most; a side that takes nothing of what the other sends: WriteIdle;
//   - pins of responses: a bounded cache; questions after one that nobody here knows:
//     16 at a time, 3 s, 32 searches, see keeper.go;
//   - who waits for a turn: the tenants' queue.
package proxy
