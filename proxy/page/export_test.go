package page

import "testing"

// RealNode starts a node that has served requests, and gives the address of its admin
// API. The proxy imports this package, so the test that can make one is beside it.
var RealNode func(t *testing.T) (admin string)
