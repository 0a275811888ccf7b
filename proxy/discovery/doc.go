// Package discovery finds backends and keeps the pool in step with what it finds:
// in a file, in DNS, or in the EndpointSlices of Kubernetes.
//
// # Parts
//
// A Source asks one place and tells the whole set whenever it has changed; Parse
// makes one of its spec. The Keeper takes the sets of all its sources, in their
// order, and does what makes the pool agree: book is the plain state machine behind
// it, which takes answers, the pool's status and a time, and returns steps.
//
// # What the Keeper does
//
// A backend that a source names is added. One that it names as draining (an
// endpoint that is not ready, or about to end) gets no new requests while that
// stands; it is not added before it is ready. One that no source names any more is
// drained, and removed when its requests have ended, at all nodes, or after
// DrainTimeout. If it returns meanwhile, it is undrained, and keeps what was learned
// of its cache. Another weight, cache size, zone or list of models changes it where
// it is; another address, or another pod under the same ID, is another engine: the
// old one is removed at once and the new one starts with nothing.
//
// Of two sources that name one ID the first counts, and one warning is logged. The
// Keeper touches no backend that it has not added: not those of the configuration,
// of the admin API, or of peers. A drain of the operator's is not ended by it, and a
// backend that the operator has removed stays away until its sources have dropped it
// and name it again.
//
// A source that can't be asked leaves its last set standing. An answer without any
// backend, after one that had some, counts only after it has stood for 30 s: a
// hiccup of DNS must not empty a fleet, and health checks see sooner who is dead.
//
// Every node discovers for itself, so give all nodes the same sources: then they
// have the same IDs, and agree on who owns what.
//
// # IDs
//
// A backend is known by its ID, in metrics and for ownership. A file gives it. In DNS it is
// host:port, of the address or of the SRV record's target. In Kubernetes it is
// POD.NAMESPACE:PORT, and the pod's UID tells a recreated pod from the one before;
// endpoints without a pod are known by address:port.
//
// # Kubernetes without client-go
//
// What is needed of the API is a list and a watch of one kind in one namespace.
// That is two GET requests, written here against the documented protocol: pages,
// resourceVersion, bookmarks, 410 Gone. client-go would bring some forty modules and
// tens of megabytes into a gateway that is one static binary, and an informer's
// cache beside a map that this package needs anyway. The watch is asked again every
// five minutes and the list every ten, so nothing that was missed stays missed. The
// service account's token is read for each request, since it rotates, and the CA
// before each connection.
//
// # Bounds
//
// 4,096 backends a source; those beyond are left out, with a warning. Files and
// names: 1 MiB of list, specs of 4 KiB. Kubernetes: pages of 8 MiB, twenty of them, events of 4 MiB,
// 1,000 slices. Each question has a deadline. Each source is one goroutine, owned
// by Keeper.Run, which waits for all.
package discovery
