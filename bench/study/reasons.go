package study

import (
	"fmt"
	"slices"
	"strings"
)

// thrash is whether a place's system prompts alone are several times what all
// caches hold.
func thrash(p place) bool { return p.workload == "tenants-1000" }

// sayWhyNot says of each promise that is not kept everywhere what the runs show of
// the reason.
func sayWhyNot(page *Page, r *Results, list []contest) {
	page.Say("What the oracle gains on the best opponent is what knowing more could gain there: most of a first token's wait is the prompt's own computation, " +
		"which no choice shortens.")
	sayReach(page, list, "the best opponent that sees no cache", againstBlind, func(c contest) opponent { return c.blind })
	sayReach(page, list, "the best of all opponents", againstAll, func(c contest) opponent { return c.all })
	sayOracle(page, r, list)
	sayBalance(page, r, list)
}

// sayReach tells the places where 15 % below an opponent is more than the oracle
// gains on it from those where it is not.
func sayReach(page *Page, list []contest, who string, judge func(contest) (float64, Judgment), opponent func(contest) opponent) {
	var beyond, within []string
	for _, c := range list {
		if judgment(c, judge) != Broken {
			continue
		}
		o := opponent(c)
		gain, _, _ := c.oracle.change(o.Sample, ttftMean)
		text := fmt.Sprintf("%v (%s; the oracle %s)", c.place, percent(o.above), percent(gain))
		if atMost(gain, -belowOpponent) == Broken {
			beyond = append(beyond, text)
		} else {
			within = append(within, text)
		}
	}
	if len(beyond) > 0 {
		page.Say("15 %% below %s is not reached at %s: there the oracle, with true caches and exact loads, gains less than that on the same opponent too.", who, strings.Join(beyond, ", "))
	}
	if len(within) > 0 {
		page.Say("Nor is it at %s, where the oracle does reach it.", strings.Join(within, ", "))
	}
}

// sayOracle says what the default policy lacks where the oracle is further ahead
// than promised.
func sayOracle(page *Page, r *Results, list []contest) {
	for _, c := range list {
		if judgment(c, againstOracle) != Broken {
			continue
		}
		text := fmt.Sprintf("At %v the default policy is %s above the oracle: it hits %s of the prompts' tokens, the oracle %s.",
			c.place, percent(c.above), decimals3(c.cost.Mean(hitRate)), decimals3(c.oracle.Mean(hitRate)))
		if events := r.Of(c.copes("cost").informedAs("cost")); len(events) > 0 {
			above, _, _ := events.change(c.oracle, ttftMean)
			lack := "so what it lacks is knowledge of caches that hold a part of the system prompts only, and change with each request"
			if atMost(above, oracleBound(c.place)) == Broken {
				lack = "so it lacks more than knowledge of the caches"
			}
			text += fmt.Sprintf(" Told by the engines what they hold, the same rule is %s above it, and hits %s: %s.", percent(above), decimals3(events.Mean(hitRate)), lack)
		}
		page.Say("%s", text)
	}
}

// sayBalance says what it costs to keep the busiest backend within a tenth of the
// mean, where the default policy doesn't.
func sayBalance(page *Page, r *Results, list []contest) {
	var parts []string
	for _, c := range list {
		if judgment(c, balanced) != Broken {
			continue
		}
		part := fmt.Sprintf("%v %s, the oracle %s", c.place, decimals2(c.uneven), decimals2(c.oracle.Mean(maxMean)))
		if name, s := bestBalanced(r, c.place); name != "" {
			change, _, _ := s.change(c.cost, ttftMean)
			part += fmt.Sprintf(", %s by `%s` at a mean TTFT of %s", decimals2(s.Mean(maxMean)), name, percent(change))
		} else {
			part += ", and by no policy within the bound"
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		page.Say("Where the busiest backend computes more than 1.10 times the mean, max/mean of the default policy, of the oracle, and of the quickest policy that keeps the bound: %s. "+
			"Where most of a prompt is cached, little is computed at all, and a few long prompts that are new decide who has computed most.", strings.Join(parts, "; "))
	}
}

// bestBalanced is the quickest of the policies that keep the bound of balance.
func bestBalanced(r *Results, p place) (name string, best Sample) {
	for _, policy := range policies() {
		s := r.Of(p.copes(policy))
		if len(s) == 0 || slices.Contains([]string{"cost", "oracle"}, policy) || atMost(s.Mean(maxMean), mostUneven) != Kept {
			continue
		}
		if name == "" || s.Mean(ttftMean) < best.Mean(ttftMean) {
			name, best = policy, s
		}
	}
	return name, best
}
