// Not a module: it says so where the modules do not load, which nothing else could.

// For tests: ?speed=20 lets it wait for half a second.
var speed = Number(new URLSearchParams(location.search).get('speed')) || 1;

setTimeout(function () {
  if (document.body.hasAttribute('data-started')) return;
  document.getElementById('late').hidden = false;
  document.getElementById('loading').hidden = true;
  document.getElementById('connection').hidden = true;
}, 10000 / speed);
