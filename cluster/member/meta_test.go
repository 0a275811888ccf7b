package member

import (
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"
	"pgregory.net/rapid"
)

func TestMetaKeepsItsForm(t *testing.T) {
	text := rapid.StringN(0, 20, 80)
	rapid.Check(t, func(t *rapid.T) {
		m := Meta{
			Link: text.Draw(t, "link"), Zone: text.Draw(t, "zone"), Cluster: text.Draw(t, "cluster"),
			Client: text.Draw(t, "client"), Admin: text.Draw(t, "admin"),
			Boot: rapid.Uint64().Draw(t, "boot"), KeyCheck: rapid.Uint64().Draw(t, "key"),
			MinProtocol: 1, MaxProtocol: rapid.Byte().Draw(t, "max")/2 + 1,
			BlockSize: rapid.IntRange(1, maxBlockSize).Draw(t, "size"), Mixed: rapid.Bool().Draw(t, "mixed"),
		}
		b, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		newer := append(b, "what a newer node adds"...)
		if got, err := decodeMeta(newer); err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%+v came back as %+v, %v", m, got, err)
		}
		for cut := range len(b) {
			if _, err := decodeMeta(b[:cut]); err == nil {
				t.Fatalf("%d of %d bytes are metadata", cut, len(b))
			}
		}
	})
}

func TestMetaTooLongIsRefused(t *testing.T) {
	long := strings.Repeat("x", maxMetaString)
	for _, m := range []Meta{{Zone: long + "x"}, {Link: long, Zone: long, Client: long, Admin: long}} {
		m.MinProtocol, m.MaxProtocol, m.BlockSize = 1, 1, 8
		if _, err := m.encode(); err == nil {
			t.Errorf("%+v has a wire form", m)
		}
	}
}

func FuzzDecodeMeta(f *testing.F) {
	m := goodMeta()
	good, _ := m.encode()
	f.Add(good)
	f.Add([]byte{metaLayout})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			return
		}
		again, err := m.encode()
		if err != nil {
			if len(b) > memberlist.MetaMaxSize {
				return // memberlist brings none so long
			}
			t.Fatalf("%+v was read and can't be written: %v", m, err)
		}
		if got, err := decodeMeta(again); err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%+v came back as %+v, %v", m, got, err)
		}
	})
}
