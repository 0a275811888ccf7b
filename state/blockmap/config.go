package blockmap

import (
	"errors"
	"fmt"
	"time"
)

// Limits of a Config. The upper one of MaxBytes keeps entry numbers in 32 bits;
// the upper one of TTL keeps the comparison of 32-bit deadlines unambiguous
// for 19 days after a location has expired, should nobody vacuum.
const (
	MinBytes = 1 << 20
	MaxBytes = 128 << 30
	MinTTL   = 10 * time.Millisecond
	MaxTTL   = 7 * 24 * time.Hour
)

// Config bounds a Map.
type Config struct {
	// MaxBytes bounds the memory of blocks, locations and tentative locations.
	// Seven eighths are for locations (44 bytes each), one eighth is for
	// tentative ones (64 bytes). Too small, and conversations are forgotten
	// before their next turn; too large costs only memory. Beside it there is
	// a fixed base: 24 bytes a backend and 30 bytes a generation that has
	// locations, void ones included; under 3 MiB where every number is in use.
	MaxBytes int64
	// TTL is how long a location is believed in without being refreshed. Too
	// short, and slow conversations lose their cache; too long, and blocks are
	// believed in that the engine has evicted, where no mirror says better.
	TTL time.Duration
}

// Validate returns all faults of c, each naming the key and what would be right.
func (c Config) Validate() error {
	var faults []error
	if c.MaxBytes < MinBytes || c.MaxBytes > MaxBytes {
		faults = append(faults, fmt.Errorf("block map: MaxBytes is %d, want %d to %d", c.MaxBytes, int64(MinBytes), int64(MaxBytes)))
	}
	if c.TTL < MinTTL || c.TTL > MaxTTL {
		faults = append(faults, fmt.Errorf("block map: TTL is %v, want %v to %v", c.TTL, MinTTL, MaxTTL))
	}
	return errors.Join(faults...)
}
