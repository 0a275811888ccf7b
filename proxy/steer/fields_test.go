package steer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// listedBy are the names that the list of a function's documentation has.
func listedBy(t *testing.T, function string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "fields.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != function {
			continue
		}
		for _, entry := range strings.Split(f.Doc.Text(), "\n  - ")[1:] {
			_, list, _ := strings.Cut(entry, ":")
			for name := range strings.SplitSeq(list, ",") {
				names = append(names, strings.Join(strings.Fields(name), " "))
			}
		}
	}
	return names
}

// Operators read the documentation, the gateway goes by the lists.
func TestDocumentationListsWhatIsTakenAway(t *testing.T) {
	for function, list := range map[string][]string{"DefaultFields": DefaultFields(), "StripHeaders": steering} {
		if got := listedBy(t, function); !slices.Equal(got, list) {
			t.Errorf("%s lists %q, want %q", function, got, list)
		}
	}
}
