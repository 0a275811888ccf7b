// Package steer edits the top-level members of a request's JSON body: it takes
// away or refuses those that steer an engine past the gateway, and gives a tenant
// its own cache salt. All other bytes stay as the client sent them.
//
// # What it must not miss
//
// A body that this package and an engine read differently would carry a member
// past it. So names are compared with their escapes decoded and without regard to
// case (some engines' parsers have none), every one of several members with the
// same name counts, and what engines may read in another way is an error: a byte
// order mark, UTF-16 and UTF-32 (Python's parser tells them by their zero bytes),
// comments, text after the object, brackets that do not match.
//
// What stands inside of strings and of nested values is not judged, since it can't
// move the end of a member: whoever calls Apply has the body read by package cbr
// afterwards, which is strict. A body that is no object for any parser passes
// unchanged.
//
// # Bounds
//
// One pass, in which a string costs a search for its closing quote. Nothing is
// allocated unless something is edited; then one buffer of the body's size.
// Values nest at most MaxDepth deep. Rules are read only: any number of
// goroutines may apply the same ones.
package steer
