package tenant

import "testing"

func TestTenantMayUseWhatItsModelsName(t *testing.T) {
	for _, c := range []struct {
		models []string
		model  string
		want   bool
	}{
		{nil, "any", true},
		{[]string{"a", "b"}, "b", true},
		{[]string{"a", "b"}, "c", false},
		{[]string{"qwen*"}, "qwen3-32b", true},
		{[]string{"qwen*"}, "qwen", true},
		{[]string{"qwen*"}, "Qwen3", false},
		{[]string{"*"}, "", true},
		{[]string{"a"}, "ab", false},
	} {
		if got := (&Tenant{Models: c.models}).Allows(c.model); got != c.want {
			t.Errorf("%q of %q: got %v", c.model, c.models, got)
		}
	}
}
