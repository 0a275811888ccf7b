package cbr

// The framing bytes of a CBR. None of them occurs in UTF-8, nor in the three-byte
// form that stands for a lone surrogate, so text needs no escapes and no length
// before it. Package documentation has the grammar.
const (
	tagEnd    = 0xFF // closes a string, number, array or object
	tagString = 0xFE
	tagArray  = 0xFD
	tagObject = 0xFC
	tagNumber = 0xFB
	tagTrue   = 0xFA
	tagFalse  = 0xF9
	tagNull   = 0xF8
	tagPrompt = 0xF7 // ends the configuration

	tagFirst = tagPrompt // bytes from here on are framing
)

// formatVersion is the first byte of a CBR. It changes with the byte format,
// since nodes that encode differently must not share locations.
const formatVersion = '1'

// isText reports whether an encoded value is the given string.
func isText(value []byte, text string) bool {
	return len(value) == len(text)+2 && value[0] == tagString && string(value[1:len(value)-1]) == text
}

// textOf is the text of an encoded string, and nil for another kind of value.
func textOf(value []byte) []byte {
	if len(value) < 2 || value[0] != tagString {
		return nil
	}
	return value[1 : len(value)-1]
}

// isSet reports whether an encoded value switches something on: anything but an
// absent one, null and false.
func isSet(value []byte) bool {
	return len(value) > 0 && value[0] != tagNull && value[0] != tagFalse
}

// isNegative reports whether an encoded value is a number below zero. Canonical
// spelling has no minus before a zero.
func isNegative(value []byte) bool {
	return len(value) > 1 && value[0] == tagNumber && value[1] == '-'
}

// field finds a member of an encoded object: its encoded value, or nil where the
// value is no object or has no such member.
func field(value []byte, name string) []byte {
	if len(value) == 0 || value[0] != tagObject {
		return nil
	}
	for value = value[1:]; value[0] != tagEnd; {
		key := keyLen(value)
		end := key + valueLen(value[key:])
		if string(value[:key]) == name {
			return value[key:end]
		}
		value = value[end:]
	}
	return nil
}

// keyLen is the length of the key at the start of an encoded member.
func keyLen(member []byte) int {
	n := 0
	for member[n] < tagFirst {
		n++
	}
	return n
}

// valueLen is the length of the encoded value at the start of p. Text holds no
// framing, so counting what opens and closes is enough.
func valueLen(p []byte) int {
	open := 0
	for i, c := range p {
		switch c {
		case tagString, tagArray, tagObject, tagNumber:
			open++
		case tagEnd:
			open--
		}
		if open == 0 && c >= tagFirst {
			return i + 1
		}
	}
	return len(p)
}
