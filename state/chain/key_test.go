package chain

import (
	"strings"
	"testing"
)

func TestKeyHalvesAreLittleEndian(t *testing.T) {
	key, err := ParseKey("000102030405060708090a0b0c0d0e0F")
	if err != nil {
		t.Fatal(err)
	}
	if want := (Key{0x0706050403020100, 0x0f0e0d0c0b0a0908}); key != want {
		t.Errorf("got %x, want %x", key, want)
	}
}

func TestKeyThatIsNotThirtyTwoHexDigitsIsRefused(t *testing.T) {
	for _, bad := range []string{"", "00", strings.Repeat("0", 31), strings.Repeat("0", 33), strings.Repeat("g", 32), strings.Repeat("é", 16)} {
		_, err := ParseKey(bad)
		if err == nil {
			t.Errorf("%q was taken", bad)
		} else if bad != "" && len(bad) > 2 && strings.Contains(err.Error(), bad) {
			t.Errorf("the error shows the key: %v", err)
		}
	}
}

// A node of another version has to derive the same key, or the cluster's block
// map is worth nothing: the figures below never change.
func TestDerivedKeyIsStable(t *testing.T) {
	if got, want := DeriveKey(DefaultClusterName), (Key{0x94176579046ae0cf, 0xc170ebfa5aa59b2a}); got != want {
		t.Errorf("got {%#x, %#x}, want {%#x, %#x}", got.K0, got.K1, want.K0, want.K1)
	}
}

func TestDerivedKeysDifferByClusterName(t *testing.T) {
	if DeriveKey("a") == DeriveKey("b") || DeriveKey("") == DeriveKey(DefaultClusterName) {
		t.Error("two cluster names share a key")
	}
}
