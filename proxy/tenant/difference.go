package tenant

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// difference is what a reload changed, in names: values may be secrets.
type difference struct {
	added, removed []string
	changed        []string // tenant: fields
}

func (d *difference) none() bool { return len(d.added)+len(d.removed)+len(d.changed) == 0 }

// differ compares two states of the file, in the order of their own.
func differ(before, after *snapshot) difference {
	var d difference
	old := make(map[string]*Tenant, len(before.tenants))
	for _, t := range before.tenants {
		old[t.Name] = t
	}
	oldKeys, newKeys := before.keysByTenant(), after.keysByTenant()
	for _, t := range after.tenants {
		was := old[t.Name]
		delete(old, t.Name)
		if was == nil {
			d.added = append(d.added, t.Name)
			continue
		}
		fields := t.changes(was)
		if !maps.Equal(oldKeys[was], newKeys[t]) {
			fields = append(fields, "keys")
		}
		if (was == before.anonymous) != (t == after.anonymous) {
			fields = append(fields, "anonymous")
		}
		if len(fields) > 0 {
			d.changed = append(d.changed, t.Name+": "+strings.Join(fields, " "))
		}
	}
	for _, t := range before.tenants {
		if old[t.Name] != nil {
			d.removed = append(d.removed, t.Name)
		}
	}
	return d
}

// changes are the names of the fields that differ, keys aside.
func (t *Tenant) changes(was *Tenant) (fields []string) {
	for _, f := range []struct {
		name    string
		differs bool
	}{
		{"models", !slices.Equal(t.Models, was.Models)},
		{"cache_salt", t.CacheSalt != was.CacheSalt},
		{"class", t.Class != was.Class},
		{"priority", t.Priority != was.Priority},
		{"weight", t.Weight != was.Weight},
		{"trusted", t.Trusted != was.Trusted},
		{"limits", t.Limits != was.Limits},
		{"per_model", !maps.Equal(t.PerModel, was.PerModel)},
	} {
		if f.differs {
			fields = append(fields, f.name)
		}
	}
	return fields
}

// keysByTenant is what each tenant's keys are, and until when.
func (s *snapshot) keysByTenant() map[*Tenant]map[digest]string {
	all := make(map[*Tenant]map[digest]string, len(s.tenants))
	for d, k := range s.keys {
		if all[k.tenant] == nil {
			all[k.tenant] = make(map[digest]string)
		}
		all[k.tenant][d] = fmt.Sprint(k.expires.Unix(), k.note)
	}
	return all
}

func (d *Directory) logDifference(before, after *snapshot) {
	diff := differ(before, after)
	if diff.none() {
		d.log.Info("keys file read again, nothing changed", slog.String("file", d.path))
		return
	}
	d.log.Info("keys file changed", slog.String("file", d.path), slog.Int("tenants", len(after.tenants)), slog.Int("keys", len(after.keys)),
		slog.String("added", named(diff.added)), slog.String("removed", named(diff.removed)), slog.String("changed", named(diff.changed)))
}
