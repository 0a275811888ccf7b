// Package readers reads the KV cache events of every backend that is configured for
// it: it finds out where they are, opens a source of the index for each rank, and
// keeps a feed on it for as long as the backend is there.
//
// Run owns one goroutine a backend that is read; that one owns its feeds. Run looks
// at the fleet once a second. A backend that was removed and added again is another
// one: its sources are closed and opened anew.
//
// What can't be found out is tried again, after 1 s and then ever later, up to half a
// minute, and said in Status meanwhile.
//
// A source that has not taken all, since the index was at its bound of memory, says so
// in its problem. Once there is room (Config.Room), and where its engine can be asked,
// it is started over: one a second, and each after 30 s at first, twice as long each
// time, 10 minutes at most.
package readers
