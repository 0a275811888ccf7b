package study

import (
	"image/color"
	"strings"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const bold = stdfont.WeightBold

var (
	paper      = color.White
	gridColour = color.Gray{Y: 225}
)

func rgb(hex uint32) color.Color {
	return color.RGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 255}
}

// The policy that the report is about is the only thick line. The oracle is no
// opponent and dotted; the product's second policy is a relative of the first.
var styles = map[string]draw.LineStyle{
	"cost":         {Color: rgb(0xC8102E), Width: vg.Points(2.6)},
	"two-phase":    {Color: rgb(0xE58A9B), Width: vg.Points(1.5), Dashes: dashed},
	"oracle":       {Color: rgb(0x000000), Width: vg.Points(1.3), Dashes: dotted},
	"smg":          {Color: rgb(0x0072B2), Width: vg.Points(1.3)},
	"llm-d":        {Color: rgb(0xE69F00), Width: vg.Points(1.3)},
	"dynamo":       {Color: rgb(0x009E73), Width: vg.Points(1.3)},
	"bounded-hash": {Color: rgb(0x7F7F7F), Width: vg.Points(1.3), Dashes: dashed},
	"random":       {Color: rgb(0x8C564B), Width: vg.Points(1.3), Dashes: dashed},
	"disturbed":    {Color: rgb(0xC8102E), Width: vg.Points(2.2)},
	"undisturbed":  {Color: rgb(0x333333), Width: vg.Points(1.3), Dashes: dashed},
}

var (
	dashed = []vg.Length{vg.Points(5), vg.Points(2.5)}
	dotted = []vg.Length{vg.Points(1.5), vg.Points(2)}
)

// palette is what can be told apart by most people, also those who see fewer
// colours.
var palette = []color.Color{
	rgb(0x0072B2), rgb(0xE69F00), rgb(0x009E73), rgb(0xCC79A7), rgb(0x56B4E9), rgb(0xD55E00), rgb(0x7F7F7F), rgb(0x5B3A8C),
}

// styleOf is a line's own style, or one of its place among others. What a name
// has behind a comma decides the dashes: a policy that is shared out in several
// ways.
func styleOf(name string, place int) draw.LineStyle {
	base, way, _ := strings.Cut(name, ", ")
	if style, ok := styles[base]; ok {
		switch way {
		case "map":
			style.Dashes = dashed
		case "map and loads":
			style.Dashes = dotted
		}
		return style
	}
	style := draw.LineStyle{Color: palette[place%len(palette)], Width: vg.Points(1.3)}
	switch place / len(palette) % 3 {
	case 1:
		style.Dashes = dashed
	case 2:
		style.Dashes = dotted
	}
	return style
}
