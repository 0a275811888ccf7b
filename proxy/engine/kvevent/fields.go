package kvevent

// read reads an event in either form into d.event; false if its end is not found.
func (d *Decoder) read(b []byte) (rest []byte, ok bool) {
	switch {
	case isMap(b):
		return d.readMap(b)
	case isArray(b):
		return d.readArray(b)
	}
	return skip(b)
}

func (d *Decoder) readMap(b []byte) (rest []byte, ok bool) {
	n, b, ok := mapHead(b)
	for ; n > 0 && ok; n-- {
		key, value, isText := text(b)
		f := fieldNone
		if isText {
			f = fieldOf(key)
		} else if value, ok = skip(b); !ok {
			return b, false
		}
		b, ok = d.field(f, value)
	}
	return b, ok
}

func (d *Decoder) readArray(b []byte) (rest []byte, ok bool) {
	n, b, ok := arrayHead(b)
	if !ok || n == 0 {
		return b, ok
	}
	if b, ok = d.field(fieldTag, b); !ok {
		return b, false
	}
	var fields []field
	if d.event.hasTag && !d.event.unknownTag {
		fields = positions[d.event.kind]
	}
	for i := 0; i < n-1 && ok; i++ {
		f := fieldNone
		if i < len(fields) {
			f = fields[i]
		}
		b, ok = d.field(f, b)
	}
	return b, ok
}

// field reads one field. A value that is not what it should be breaks the event
// and is passed over; false if its end is not found.
func (d *Decoder) field(f field, b []byte) (rest []byte, ok bool) {
	if f != fieldNone {
		if rest, ok = d.value(f, b); ok {
			return rest, true
		}
		d.event.fail(f)
	}
	return skip(b)
}

// value reads the value of a field; false if it is not what it should be.
func (d *Decoder) value(f field, b []byte) (rest []byte, ok bool) {
	e := &d.event
	switch f {
	case fieldTokens:
		if e.tokens {
			return b, false
		}
		e.tokens = true
		d.tokens, rest, ok = appendTokens(d.tokens, b)
	case fieldHashes:
		if e.hashes {
			return b, false
		}
		e.hashes = true
		d.hashes, rest, ok = appendHashes(d.hashes, b)
	case fieldCounts:
		if e.counts {
			return b, false
		}
		e.counts = !isNil(b)
		d.counts, rest, ok = appendCounts(d.counts, b)
	case fieldParent:
		if e.hasParent = !isNil(b); !e.hasParent {
			return b[1:], true
		}
		e.parent, rest, ok = hash(b)
	case fieldBlockSize:
		e.blockSize, rest, ok = count(b, 0)
	case fieldGroup:
		e.group, rest, ok = count(b, -1)
	case fieldLoRAID:
		e.loraID, rest, ok = count(b, 0)
	case fieldExtraKeys:
		rest, ok = d.keepExtraKeys(b)
	case fieldLoRA:
		if isMap(b) {
			return d.sglangMap(b)
		}
		rest, ok = d.string(&e.lora, b)
	default:
		rest, ok = d.word(f, b)
	}
	return rest, ok
}

// word reads the fields that are names of a closed set.
func (d *Decoder) word(f field, b []byte) (rest []byte, ok bool) {
	e := &d.event
	s, rest, ok := text(b)
	if !ok {
		return b, false
	}
	switch f {
	case fieldTag:
		if e.hasTag || len(s) == 0 {
			return b, false
		}
		e.setTag(s)
	case fieldMedium:
		e.tier = d.names.tier(s)
	case fieldSpecKind:
		e.specKind = d.names.of(s)
	case fieldLocality:
		e.remote = len(s) > 0 && string(s) != "LOCAL"
	}
	return rest, true
}

func (d *Decoder) string(into *string, b []byte) (rest []byte, ok bool) {
	s, rest, ok := text(b)
	if ok {
		*into = d.names.of(s)
	}
	return rest, ok
}

// sglangMap reads the map that SGLang sends in the place of the adapter's name.
func (d *Decoder) sglangMap(b []byte) (rest []byte, ok bool) {
	n, b, ok := mapHead(b)
	for ; n > 0 && ok; n-- {
		var key []byte
		if key, b, ok = text(b); !ok {
			return b, false
		}
		switch string(key) {
		case "cache_salt":
			b, ok = d.string(&d.event.salt, b)
		case "lora_name":
			b, ok = d.string(&d.event.lora, b)
		default:
			b, ok = skip(b)
		}
	}
	return b, ok
}

// keepExtraKeys leaves extra keys for when the rest of the event is known.
func (d *Decoder) keepExtraKeys(b []byte) (rest []byte, ok bool) {
	if !isNil(b) && !isArray(b) {
		return b, false
	}
	rest, ok = skip(b)
	if ok && !isNil(b) {
		d.event.extraKeys = b[:len(b)-len(rest)]
	}
	return rest, ok
}
