package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kvca/bench/fake"
	"kvca/bench/gateway"
)

// Statuses asks several nodes at the same time how they are.
func Statuses(ctx context.Context, list []*Node) ([]*gateway.Status, error) {
	all, faults := make([]*gateway.Status, len(list)), make([]error, len(list))
	var asking sync.WaitGroup
	for i, n := range list {
		asking.Go(func() { all[i], faults[i] = n.Status(ctx) })
	}
	asking.Wait()
	return all, errors.Join(faults...)
}

// each asks the nodes and joins what check finds wrong with the view of each.
func each(ctx context.Context, list []*Node, check func(n *Node, s *gateway.Status) error) error {
	all, err := Statuses(ctx, list)
	if err != nil {
		return err
	}
	var faults []error
	for i, s := range all {
		if err := check(list[i], s); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", list[i].Place.Name, err))
		}
	}
	return errors.Join(faults...)
}

// Whole finds fault where a node does not see each of the list ready and, if it
// is another, linked.
func Whole(ctx context.Context, list []*Node) error {
	return each(ctx, list, func(n *Node, s *gateway.Status) error {
		seen := map[string]gateway.Member{}
		for _, m := range s.Members {
			seen[m.Name] = m
		}
		var faults []error
		for _, other := range list {
			m, self := seen[other.Place.Name], other == n
			if m.State != "alive" || !m.Ready || !self && m.Link != "up" {
				faults = append(faults, fmt.Errorf("sees %s as %q, ready %v, link %q", other.Place.Name, m.State, m.Ready, m.Link))
			}
		}
		return errors.Join(faults...)
	})
}

// Owned finds fault where a backend is owned by no node of the list, or not by
// the same one in everybody's view.
func Owned(ctx context.Context, list []*Node) error {
	names, owners := map[string]bool{}, map[string]string{}
	for _, n := range list {
		names[n.Place.Name] = true
	}
	return each(ctx, list, func(_ *Node, s *gateway.Status) error {
		for _, b := range s.Backends {
			first, known := owners[b.ID]
			owners[b.ID] = b.Owner
			if !names[b.Owner] || known && first != b.Owner {
				return fmt.Errorf("%s is owned by %q here, by %q elsewhere", b.ID, b.Owner, first)
			}
		}
		return nil
	})
}

// Exact finds fault where a node's view of a backend's load is not what runs on
// the backend. It can hold only while requests neither begin nor end.
func Exact(ctx context.Context, list []*Node, fleet func(context.Context) (fake.Stats, error)) error {
	return each(ctx, list, func(_ *Node, s *gateway.Status) error {
		truth, err := fleet(ctx)
		if err != nil {
			return err
		}
		views := map[string]gateway.Backend{}
		for _, b := range s.Backends {
			views[b.ID] = b
		}
		var faults []error
		for i, b := range truth.Backends {
			if view, known := views[BackendID(i)]; !known || view.Active != b.Active {
				faults = append(faults, fmt.Errorf("%s, owned by %q, counts %d requests and serves %d", BackendID(i), view.Owner, view.Active, b.Active))
			}
		}
		return errors.Join(faults...)
	})
}

// AtRest finds fault where a node knows of any load.
func AtRest(ctx context.Context, list []*Node) error {
	return each(ctx, list, func(_ *Node, s *gateway.Status) error {
		if left := s.Load(); left != "" {
			return errors.New("load is left: " + left)
		}
		return nil
	})
}

// SameMaps finds fault where two nodes' block maps differ.
func SameMaps(ctx context.Context, list []*Node) error {
	first := int64(-1)
	return each(ctx, list, func(n *Node, s *gateway.Status) error {
		if first < 0 {
			first = s.BlockMap.Locations
		}
		if s.BlockMap.Locations != first {
			return fmt.Errorf("%d locations here, %d elsewhere", s.BlockMap.Locations, first)
		}
		for _, other := range list {
			differs, compared := s.Divergence[other.Place.Name]
			if other != n && (differs != 0 || !compared) {
				return fmt.Errorf("differs from %s in %d entries, compared %v", other.Place.Name, differs, compared)
			}
		}
		return nil
	})
}
