package images

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"strings"

	scaled "golang.org/x/image/draw"
)

// The limits of a picture: its pixels, so that a small file does not unpack into all memory, and its bytes.
const (
	pixelsMax = 1 << 26
	bytesMax  = 1 << 28
)

// forms are the pictures that people have beside PNG and JPEG, by their first bytes; a dot stands for any byte.
var forms = []struct{ first, name string }{
	{"GIF8", "GIF"}, {"RIFF....WEBP", "WebP"}, {"BM", "BMP"}, {"II*\x00", "TIFF"}, {"MM\x00*", "TIFF"}, {"....ftyp", "HEIC or AVIF"},
	{"P5", "PGM"}, {"P6", "PPM"}, {"%PDF", "PDF"}, {"<svg", "SVG"}, {"\x00\x00\x00\x0cJXL", "JPEG XL"}, {"\xff\x4f\xff\x51", "JPEG 2000"},
}

// decoder turns files into rows of one shape. Each goroutine has its own.
type decoder struct {
	*Options
	root  *os.Root
	shape Shape // of all rows; zero: that of the first picture
	file  bytes.Buffer
	rgb   *image.RGBA // scratch
}

// read decodes a picture into dst, Shape.Values bytes in planes, and returns the hash of its file. A decoder without a shape gets that of
// the picture, and returns its bytes.
func (d *decoder) read(name string, dst []byte) (values []byte, sum [sha256.Size]byte, err error) {
	defer func() {
		if p := recover(); p != nil { // a decoder of the library has met what it does not expect
			err = fmt.Errorf("it is damaged: the decoder gives up (%v)", p)
		}
	}()
	if err := d.load(name); err != nil {
		return nil, sum, err
	}
	sum = sha256.Sum256(d.file.Bytes())
	picture, err := decode(d.file.Bytes())
	if err != nil {
		return nil, sum, err
	}
	values, err = d.row(picture, dst)
	return values, sum, err
}

// load reads the file. Links that lead out of the folder are refused: what they lead to is not of the set.
func (d *decoder) load(name string) error {
	f, err := d.root.Open(name)
	if err != nil {
		var of *os.PathError
		if errors.As(err, &of) {
			err = of.Err
		}
		if strings.Contains(err.Error(), "escapes") {
			err = errors.New("it is a link out of the folder, which is not followed: copy the picture there")
		}
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is no regular file")
	case info.Size() > bytesMax:
		return fmt.Errorf("it has %d bytes, at most %d", info.Size(), bytesMax)
	}
	d.file.Reset()
	_, err = io.Copy(&d.file, io.LimitReader(f, bytesMax))
	return err
}

// decode decodes a file that is a picture by its first bytes.
func decode(b []byte) (image.Image, error) {
	config, read := png.DecodeConfig, png.Decode
	switch {
	case len(b) == 0:
		return nil, errors.New("it is empty")
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		if isAnimated(b) {
			return nil, errors.New("it is an animated PNG: write one picture of it as PNG")
		}
	case bytes.HasPrefix(b, []byte("\xff\xd8\xff")):
		config, read = jpeg.DecodeConfig, jpeg.Decode
	default:
		for _, f := range forms {
			if len(b) >= len(f.first) && startsAs(b, f.first) {
				return nil, fmt.Errorf("it is of %s, which is not read: write it as PNG, as in PIL.Image.open(FILE).save('x.png')", f.name)
			}
		}
		return nil, fmt.Errorf("it is no picture of PNG or JPEG: it begins with %q", b[:min(8, len(b))])
	}
	c, err := config(bytes.NewReader(b))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is damaged or cut short: %w", err)
	case c.ColorModel == color.CMYKModel:
		return nil, errors.New("its colours are CMYK, those of printing: write it in RGB, as in " +
			"PIL.Image.open(FILE).convert('RGB').save('x.png')")
	case c.Width < 1 || c.Height < 1 || c.Width > pixelsMax/c.Height:
		return nil, fmt.Errorf("it has %d x %d pixels, at most %d", c.Height, c.Width, pixelsMax)
	}
	picture, err := read(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("it is damaged or cut short: %w", err)
	}
	return picture, nil
}

func startsAs(b []byte, first string) bool {
	for i := range len(first) {
		if first[i] != '.' && b[i] != first[i] {
			return false
		}
	}
	return true
}

// isAnimated looks for the chunk of an animation, which stands before the pixels.
func isAnimated(b []byte) bool {
	for at := 8; at+8 <= len(b); {
		n, kind := binary.BigEndian.Uint32(b[at:]), string(b[at+4:at+8])
		if kind == "acTL" {
			return true
		}
		if kind == "IDAT" || uint64(at)+12+uint64(n) > uint64(len(b)) {
			return false
		}
		at += 12 + int(n)
	}
	return false
}

// isGrey says whether a picture has no colours. A palette may have some.
func isGrey(p image.Image) bool {
	switch p.(type) {
	case *image.Gray, *image.Gray16:
		return true
	}
	return false
}

// row makes a picture a row.
func (d *decoder) row(p image.Image, dst []byte) ([]byte, error) {
	grey := isGrey(p)
	isFirst := d.shape == Shape{}
	channels := 3
	switch {
	case d.Color == ColorGrey || d.Color != ColorRGB && (isFirst && grey || d.shape.Channels == 1):
		channels = 1
	}
	if d.Color != ColorRGB && d.Color != ColorGrey && !isFirst && grey != (channels == 1) {
		return nil, fmt.Errorf("it is %s, and the first picture %s: set data.pictures.color: rgb or grey, which all become",
			colourWord(grey), colourWord(!grey))
	}
	rgb := d.plain(p)
	size := rgb.Bounds().Size()
	if to := d.resized(size); to != size {
		if to.X > pixelsMax/to.Y || max(to.X, to.Y) > sideMax {
			return nil, fmt.Errorf("it has %d x %d pixels, and would have %d x %d after data.pictures.resize, at most %d and %d a side: "+
				"give height and width", size.Y, size.X, to.Y, to.X, pixelsMax, sideMax)
		}
		out := image.NewRGBA(image.Rectangle{Max: to})
		scaled.BiLinear.Scale(out, out.Bounds(), rgb, rgb.Bounds(), scaled.Src, nil)
		rgb = out
	}
	from := rgb.Bounds()
	if d.Crop != [2]int{} {
		if d.Crop[0] > from.Dy() || d.Crop[1] > from.Dx() {
			return nil, fmt.Errorf("it has %d x %d pixels%s, fewer than data.pictures.crop, %d x %d: set data.pictures.resize", from.Dy(), from.Dx(),
				map[bool]string{true: " after resize"}[from.Size() != size], d.Crop[0], d.Crop[1])
		}
		corner := from.Min.Add(image.Pt((from.Dx()-d.Crop[1])/2, (from.Dy()-d.Crop[0])/2))
		from = image.Rectangle{corner, corner.Add(image.Pt(d.Crop[1], d.Crop[0]))}
	}
	shape := Shape{Channels: channels, Height: from.Dy(), Width: from.Dx()}
	switch {
	case isFirst:
		if max(shape.Height, shape.Width) > sideMax {
			return nil, fmt.Errorf("it has %d x %d pixels, at most %d in each direction: set data.pictures.resize", shape.Height, shape.Width,
				sideMax)
		}
		d.shape = shape
	case shape != d.shape:
		return nil, fmt.Errorf("it has %d x %d pixels, and the first picture %d x %d: set data.pictures.resize: [%d, %d], which all become",
			shape.Height, shape.Width, d.shape.Height, d.shape.Width, d.shape.Height, d.shape.Width)
	}
	if dst == nil {
		dst = make([]byte, shape.Values())
	}
	toPlanes(dst, rgb, from, channels)
	return dst, nil
}

// sideMax bounds the sides of rows, as those of arrays.
const sideMax = 65535

func colourWord(grey bool) string {
	if grey {
		return "grey"
	}
	return "in colour"
}

// resized is the size that a picture becomes: with one number its shorter side has so many pixels.
func (d *decoder) resized(size image.Point) image.Point {
	h, w := d.Resize[0], d.Resize[1]
	switch {
	case h == 0:
		return size
	case w > 0:
		return image.Pt(w, h)
	case size.X <= size.Y:
		return image.Pt(h, max(1, size.Y*h/size.X))
	}
	return image.Pt(max(1, size.X*h/size.Y), h)
}

// plain is a picture as RGB without transparency: of a colour that is partly transparent it has the colour alone, as PIL's convert('RGB').
func (d *decoder) plain(p image.Image) *image.RGBA {
	if same, ok := p.(*image.RGBA); ok { // PNG without transparency
		return same
	}
	size := p.Bounds().Size()
	if d.rgb == nil || d.rgb.Bounds().Size() != size {
		d.rgb = image.NewRGBA(image.Rectangle{Max: size})
	}
	to, at := d.rgb, p.Bounds().Min
	switch p := p.(type) {
	case *image.NRGBA:
		for y := range size.Y {
			copy(to.Pix[y*to.Stride:][:4*size.X], p.Pix[y*p.Stride:])
		}
	case *image.Paletted:
		colours := make([][3]uint8, len(p.Palette))
		for i, c := range p.Palette {
			of := color.NRGBAModel.Convert(c).(color.NRGBA)
			colours[i] = [3]uint8{of.R, of.G, of.B}
		}
		for y := range size.Y {
			for x := range size.X {
				if k := int(p.ColorIndexAt(at.X+x, at.Y+y)); k < len(colours) {
					copy(to.Pix[y*to.Stride+4*x:], colours[k][:])
				}
			}
		}
	case *image.NRGBA64:
		for y := range size.Y {
			for x := range size.X {
				c := p.NRGBA64At(at.X+x, at.Y+y)
				copy(to.Pix[y*to.Stride+4*x:], []uint8{uint8(c.R >> 8), uint8(c.G >> 8), uint8(c.B >> 8)})
			}
		}
	default: // without transparency
		draw.Draw(to, to.Bounds(), p, at, draw.Src)
	}
	for i := 3; i < len(to.Pix); i += 4 {
		to.Pix[i] = 255
	}
	return to
}

// toPlanes writes a part of a picture plane by plane. Of colours a grey plane has the luminance of ITU-R 601, rounded as PIL's
// convert('L').
func toPlanes(dst []byte, p *image.RGBA, from image.Rectangle, channels int) {
	plane, at := from.Dx()*from.Dy(), 0
	for y := from.Min.Y; y < from.Max.Y; y++ {
		row := p.Pix[p.PixOffset(from.Min.X, y):][:4*from.Dx()]
		for x := 0; x < len(row); x += 4 {
			if channels == 1 {
				r, g, b := uint32(row[x]), uint32(row[x+1]), uint32(row[x+2])
				dst[at] = uint8((r*19595 + g*38470 + b*7471 + 1<<15) >> 16)
			} else {
				dst[at], dst[plane+at], dst[2*plane+at] = row[x], row[x+1], row[x+2]
			}
			at++
		}
	}
}
