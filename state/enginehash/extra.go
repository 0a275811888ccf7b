package enginehash

// extra is something that a block's identity depends on besides its tokens.
type extra struct {
	kind   extraKind
	a, b   string // the name and path of an adapter, a media item's id, a salt
	offset int64  // a media item's, from the block's start
}

type extraKind uint8

const (
	extraLoRA extraKind = iota
	extraMedia
	extraSalt
)

// The tags of extras in the bytes that are hashed.
const (
	tagLoRA  = "lora"
	tagMedia = "mm"
	tagSalt  = "cache_salt"
)

// appendExtras appends the extras of the block from one token to another, in the
// order in which they are hashed. No item of media ends before the block.
func appendExtras(dst []extra, p *Prompt, media []Media, from, to int) []extra {
	if p.LoRA != "" {
		dst = append(dst, extra{kind: extraLoRA, a: p.LoRA, b: p.LoRAPath})
	}
	for i := range media {
		m := &media[i]
		if m.Offset >= to {
			break
		}
		dst = append(dst, extra{kind: extraMedia, a: m.ID, offset: int64(m.Offset) - int64(from)})
	}
	if from == 0 && p.Salt != "" {
		dst = append(dst, extra{kind: extraSalt, a: p.Salt})
	}
	return dst
}
