package kvindex

// copies counts the copies of a block in each tier: an engine may have several and
// tells of each one's end. Beyond what fits they are not counted, so the block is
// believed gone too early then.
//
//	remote 6 | ssd 6 | cpu 6 | gpu 14
type copies uint32

var copiesAt = [Tiers]uint{0, 14, 20, 26}

var copiesMax = [Tiers]copies{1<<14 - 1, 1<<6 - 1, 1<<6 - 1, 1<<6 - 1}

func (c copies) of(t Tier) copies { return c >> copiesAt[t] & copiesMax[t] }

func (c copies) set(t Tier, n copies) copies {
	return c&^(copiesMax[t]<<copiesAt[t]) | min(n, copiesMax[t])<<copiesAt[t]
}

// tiers has a bit for each tier with a copy.
func (c copies) tiers() (tiers uint8) {
	for t := range Tier(Tiers) {
		if c.of(t) > 0 {
			tiers |= 1 << t
		}
	}
	return tiers
}
