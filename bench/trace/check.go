package trace

import (
	"errors"
	"fmt"
	"time"
)

var errMissing = errors.New("it is missing")

// checkInt checks a number that a line must have.
func checkInt(key string, value *int, least, most int) error {
	if value == nil {
		return fmt.Errorf("%s: want %d to %d: %w", key, least, most, errMissing)
	}
	if *value < least || *value > most {
		return fmt.Errorf("%s: want %d to %d, came %d", key, least, most, *value)
	}
	return nil
}

// checkTime checks a time in the given unit that a line must have.
func checkTime(key string, value *float64, unit time.Duration) error {
	most := float64(maxTime / unit)
	if value == nil {
		return fmt.Errorf("%s: want 0 to %.0f: %w", key, most, errMissing)
	}
	if !(*value >= 0 && *value <= most) {
		return fmt.Errorf("%s: want 0 to %.0f, came %v", key, most, *value)
	}
	return nil
}

// checkOptionalTime is for what some lines know and others have as null.
func checkOptionalTime(key string, value *float64, unit time.Duration) error {
	if value == nil {
		return nil
	}
	return checkTime(key, value, unit)
}
