package wire

import (
	"encoding/binary"

	"kvca/state/turn"
)

// AppendTurn appends a Turn frame.
func AppendTurn(b []byte, m *turn.Message) []byte {
	b = appendName(append(b, byte(m.Op)), m.Pool)
	b = appendName(binary.AppendUvarint(b, m.ID), m.Tenant)
	return appendU64(appendSpan(appendSpan(appendF64(append(b, m.Class), m.Weight), m.Waited), m.Left), m.Backends)
}

// Turn reads a Turn frame.
func (r *Reader) Turn() (m turn.Message) {
	m.Op, m.Pool = turn.Op(r.U8()), r.name()
	m.ID, m.Tenant = r.Uvarint(), r.name()
	m.Class, m.Weight, m.Waited, m.Left, m.Backends = r.U8(), r.F64(), r.span(), r.span(), r.U64()
	if m.Op == 0 || m.Op >= turn.Ops {
		r.bad = true
	}
	return m
}

func appendName(b []byte, name string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(name))), name...)
}

// name reads the name of a pool or a tenant.
func (r *Reader) name() string {
	b := r.Bytes()
	if len(b) > turn.MaxName {
		r.bad, r.b = true, nil
		return ""
	}
	return string(b)
}
