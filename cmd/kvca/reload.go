package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"kvca/proxy/backend"
)

// lookEvery is how often the configuration file is looked at.
const lookEvery = 2 * time.Second

// textsOf is what a person would recognise of the values of an option.
func textsOf(items []item) []string {
	texts := make([]string, len(items))
	for i, it := range items {
		texts[i] = it.String()
	}
	return texts
}

// String writes an item as one would in a file, on one line.
func (it item) String() string {
	var parts []string
	switch it.kind {
	case sequence:
		for _, e := range it.list {
			parts = append(parts, e.String())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case mapping:
		for _, f := range it.fields {
			parts = append(parts, f.key+": "+f.value.String())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return it.text
}

// difference is one option whose value is not what it was.
type difference struct {
	option   *option
	was, now []string
}

func (d difference) String() string {
	gone := without(d.was, d.now)
	come := without(d.now, d.was)
	show := func(list []string) string {
		if len(list) == 0 {
			return "none"
		}
		return strings.Join(list, " ")
	}
	return fmt.Sprintf("%s: %s -> %s", d.option.key(), show(gone), show(come))
}

// without is what of list is not in other, or all where only the order differs.
func without(list, other []string) []string {
	rest := slices.DeleteFunc(slices.Clone(list), func(v string) bool { return slices.Contains(other, v) })
	if len(rest) == 0 && len(list) == len(other) {
		return list
	}
	return rest
}

// differences are the options whose values are others in next.
func (s *settings) differences(next *settings) []difference {
	var list []difference
	for _, o := range options() {
		if was, now := s.given[o.key()], next.given[o.key()]; !slices.Equal(was, now) {
			list = append(list, difference{o, was, now})
		}
	}
	return list
}

// joined are differences on one line.
func joined(list []difference) string {
	texts := make([]string, len(list))
	for i, d := range list {
		texts[i] = d.String()
	}
	return strings.Join(texts, "; ")
}

// errUnchanged means that there was nothing to reload.
var errUnchanged = errors.New("nothing has changed")

// reload reads the settings anew and puts them in force: all of them, or none if
// one is at fault or would need a restart.
func (n *node) reload() ([]difference, error) {
	next, err := n.settings.again()
	if err != nil {
		return nil, err
	}
	list := n.live.Load().differences(next)
	fixed := slices.DeleteFunc(slices.Clone(list), func(d difference) bool { return d.option.live })
	switch {
	case len(fixed) > 0:
		return nil, fmt.Errorf("these take effect only after a restart, so nothing was changed: %s", joined(fixed))
	case len(list) == 0:
		return nil, errUnchanged
	}
	return list, n.apply(next)
}

// apply puts settings in force. What can be refused comes first, so that a refusal
// leaves everything as it was.
func (n *node) apply(next *settings) error {
	was := n.live.Load()
	if err := n.checkBackends(was.backends, next.backends); err != nil {
		return err
	}
	next.proxy.Tenants, next.proxy.Limiter, next.proxy.Queue = was.proxy.Tenants, was.proxy.Limiter, was.proxy.Queue
	next.proxy.Observers, next.proxy.Tracer, next.proxy.WantsDetail = was.proxy.Observers, was.proxy.Tracer, was.proxy.WantsDetail
	if err := n.proxy.Reconfigure(next.proxy); err != nil {
		return err
	}
	if err := n.router.SetPolicies(next.router.Policy, next.router.Policies); err != nil {
		return err
	}
	n.applyBackends(was.backends, next.backends)
	if n.level != nil {
		n.level.Set(next.logLevel)
	}
	n.live.Store(next)
	return nil
}

// byID indexes backends by what names them.
func byID(list []backend.Config) map[string]backend.Config {
	index := make(map[string]backend.Config, len(list))
	for _, c := range list {
		index[c.ID] = c
	}
	return index
}

// checkBackends is whether those that are new can be added.
func (n *node) checkBackends(were, next []backend.Config) error {
	was, there := byID(were), make(map[string]bool)
	for _, b := range n.pool.All() {
		there[b.ID] = true
	}
	for _, c := range next {
		if _, own := was[c.ID]; !own && there[c.ID] {
			return fmt.Errorf("backend: %s is there already, by the admin API or from a peer: remove it there first, or leave it out", c.ID)
		}
	}
	return nil
}

// applyBackends removes, changes and adds. One that changes in more than what a
// running one can take begins anew: another address is another engine.
func (n *node) applyBackends(were, next []backend.Config) {
	was, now := byID(were), byID(next)
	for _, id := range slices.Sorted(maps.Keys(was)) {
		if c, stays := now[id]; !stays || !was[id].Tunable(c) {
			n.warnOf(n.pool.Remove(id))
		}
	}
	for _, c := range next {
		switch old, known := was[c.ID]; {
		case !known || !old.Tunable(c):
			n.warnOf(n.pool.Add(c))
		case !reflect.DeepEqual(old, c):
			n.warnOf(n.pool.Change(c))
		}
	}
}

// warnOf logs what a change of one backend met: somebody changed it meanwhile.
func (n *node) warnOf(err error) {
	if err != nil {
		n.log.Warn("reload: a backend is not as configured", "error", err)
	}
}

// follow reloads when a signal says so and when the file has changed, until ctx
// ends.
func (n *node) follow(ctx context.Context) {
	if n.settings.again == nil { // inside another program
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	seen := stampOf(n.settings.file)
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			seen = stampOf(n.settings.file)
			for _, read := range n.front.reloads {
				if err := read(); err != nil {
					n.log.Error("reload: a file is no good, what was read before stays in force", "error", err)
				}
			}
			n.reloadLogged("signal")
		case <-tick.C:
			if now := stampOf(n.settings.file); now != seen {
				seen = now
				n.reloadLogged("file changed")
			}
		}
	}
}

// stamp tells versions of a file apart.
type stamp struct {
	modified time.Time
	size     int64
}

func stampOf(file string) stamp {
	info, err := os.Stat(file)
	if file == "" || err != nil {
		return stamp{} // a file that is being replaced will be there at the next look
	}
	return stamp{modified: info.ModTime(), size: info.Size()}
}

func (n *node) reloadLogged(why string) {
	list, err := n.reload()
	switch {
	case errors.Is(err, errUnchanged):
		n.log.Info("reload: nothing has changed", "why", why)
	case err != nil:
		n.log.Error("reload: refused, everything stays as it is", "why", why, "error", err)
		n.reloads.WithLabelValues("error").Inc()
		return
	default:
		n.log.Info("reload: in force", "why", why, "changes", joined(list))
	}
	n.reloads.WithLabelValues("ok").Inc()
}
