// Package page serves the page for people at the admin listener's root: a node and
// its cluster at a glance, backends, decisions, and what would be decided now.
//
// It is a few files of plain HTML, CSS and ES modules, embedded, with no step that
// builds them; the charts are drawn by uPlot, which lies beside its licence in
// static/vendor. The page asks only the node that served it: /cluster/status, /live,
// /decisions, /explain, and drain and undrain of a backend. Its Content-Security-Policy
// allows nothing else, neither scripts nor styles inside the document.
//
// # In the browser
//
//	app.js        puts the parts together         poll.js     asks, backs off, pauses when hidden
//	api.js        requests, errors, the token     series.js   ten minutes of seconds, in place
//	dom.js        elements, lists by key          format.js   numbers for people
//	attention.js  what is wrong, in sentences     tiles.js    figures and charts
//	map.js        nodes and what they own         backends.js the table, drain and undrain
//	decisions.js  the last ones, in detail        explain.js  asks for a decision
//	limits.js     tenants, index, this node       theme.js    light, dark
//
// The page keeps ten minutes of seconds in arrays of fixed length, at most 200
// decisions, and the last status; tables show a page of rows at a time. One request of
// each kind is under way at most, each with a deadline.
package page
