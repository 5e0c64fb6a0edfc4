package images

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fluentps/ps/workload/dataset/files"
)

// drawn is a picture of random colours.
func drawn(p interface {
	image.Image
	Set(x, y int, c color.Color)
}, seed uint64) image.Image {
	r := rand.New(rand.NewPCG(seed, 1))
	b := p.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			p.Set(x, y, color.NRGBA{uint8(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32()), 255})
		}
	}
	return p
}

func rgb(seed uint64, height, width int) image.Image {
	return drawn(image.NewRGBA(image.Rect(0, 0, width, height)), seed)
}

func grey(seed uint64, height, width int) image.Image {
	return drawn(image.NewGray(image.Rect(0, 0, width, height)), seed)
}

func pngOf(p image.Image) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func jpegOf(p image.Image) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, p, &jpeg.Options{Quality: 95}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// folderOf writes files, with their folders.
func folderOf(t testing.TB, all map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range all {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// planesOf are the bytes of a picture by the definition: R, G and B, or the luminance, of each pixel.
func planesOf(p image.Image, channels int) (all []byte) {
	b := p.Bounds()
	for c := range channels {
		for y := b.Min.Y; y < b.Max.Y; y++ {
			for x := b.Min.X; x < b.Max.X; x++ {
				k := color.NRGBAModel.Convert(p.At(x, y)).(color.NRGBA)
				if channels == 1 {
					all = append(all, uint8((299*float64(k.R)+587*float64(k.G)+114*float64(k.B))/1000+0.5))
					continue
				}
				all = append(all, []uint8{k.R, k.G, k.B}[c])
			}
		}
	}
	return all
}

// A folder has a folder for each class: rows are in the order of classes and names, classes in that of their names, and pixels are those of
// the pictures divided by 255.
func TestAFolderForEachClass(t *testing.T) {
	pictures := map[string]image.Image{"cat/b.png": rgb(1, 5, 4), "cat/a.png": rgb(2, 5, 4), "ape/deep/x.PNG": rgb(3, 5, 4),
		"dog/1.png": rgb(4, 5, 4)}
	all := map[string][]byte{"cat/.DS_Store": {1}, "notes.txt": {2}, ".git/a.png": {3}}
	for name, p := range pictures {
		all[name] = pngOf(p)
	}
	in := files.New(0)
	train, test, found, err := ReadPictures(folderOf(t, all), "", Options{}, in)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(found.Names, []string{"ape", "cat", "dog"}) || found.Classes != 3 || test.Rows() != 0 ||
		train.Shape() != (Shape{3, 5, 4}) {
		t.Errorf("%+v, %d test rows, shape %v", found, test.Rows(), train.Shape())
	}
	x, y := make([]float32, 4*60), make([]int32, 4)
	train.Fill(x, y, []int32{0, 1, 2, 3})
	if !slices.Equal(y, []int32{0, 1, 1, 2}) {
		t.Errorf("classes %v", y)
	}
	for row, name := range []string{"ape/deep/x.PNG", "cat/a.png", "cat/b.png", "dog/1.png"} {
		for i, v := range planesOf(pictures[name], 3) {
			if got := x[row*60+i]; got != float32(v)/255 {
				t.Fatalf("%s: value %d is %v, want %d/255", name, i, got, v)
			}
		}
	}
	if text := strings.Join(in.Found, "\n"); !strings.Contains(text, "1 other file left out, such as notes.txt") ||
		!strings.Contains(text, "4 pictures for training, 0 for the test, 5 x 4, rgb") {
		t.Errorf("found %q", text)
	}
}

// The same pictures are the same rows, whether folders or a file have their classes, and whoever names the parts.
func TestWaysToNamePictures(t *testing.T) {
	all := map[string][]byte{}
	for i := range 6 {
		all[fmt.Sprintf("set/%s/%d/p%d.png", []string{"train", "val"}[i/4], i%2, i)] = pngOf(grey(uint64(i), 3, 4))
	}
	all["set/train.csv"] = []byte("# by hand\nfile,class\ntrain/0/p0.png,0\ntrain/0/p2,0\n\"train/1/p1.png\", 1\ntrain/1/p3.png,1\n")
	all["set/val.csv"] = []byte("\ufeffval/0/p4.png,0\nval/1/p5.png,1\n")
	dir := filepath.Join(folderOf(t, all), "set")
	os.MkdirAll(filepath.Join(dir, "both"), 0o777)
	os.Rename(filepath.Join(dir, "train"), filepath.Join(dir, "both/train"))
	os.Rename(filepath.Join(dir, "val"), filepath.Join(dir, "both/val"))
	os.Symlink("both/train", filepath.Join(dir, "train"))
	os.Symlink("both/val", filepath.Join(dir, "val"))
	var first []float32
	for _, way := range [][2]string{{"both", ""}, {"both/train", "both/val"}, {"train.csv", "val.csv"}, {"train.csv", "both/val"}} {
		test := ""
		if way[1] != "" {
			test = filepath.Join(dir, way[1])
		}
		train, tests, found, err := ReadPictures(filepath.Join(dir, way[0]), test, Options{}, files.New(0))
		if err != nil {
			t.Fatalf("%v: %v", way, err)
		}
		x, y := make([]float32, 6*12), make([]int32, 6)
		train.Fill(x, y, []int32{0, 1, 2, 3})
		tests.Fill(x[48:], y[4:], []int32{0, 1})
		if first == nil {
			first = x
		}
		if !slices.Equal(x, first) || !slices.Equal(y, []int32{0, 0, 1, 1, 0, 1}) || found.Classes != 2 || train.Shape() != (Shape{1, 3, 4}) {
			t.Errorf("%v: classes %v of %+v, shape %v, or other pixels", way, y, found, train.Shape())
		}
	}
}

// Each kind of PNG becomes the colours that it has, and grey becomes what PIL's convert makes of them.
func TestColoursOfPictures(t *testing.T) {
	size := image.Rect(0, 0, 7, 5)
	half := image.NewNRGBA(size)
	drawn(half, 5)
	for i := 3; i < len(half.Pix); i += 4 {
		half.Pix[i] = uint8(i) // transparency changes no colour
	}
	palette := image.NewPaletted(size, color.Palette{color.NRGBA{255, 0, 0, 255}, color.NRGBA{1, 2, 3, 0}, color.NRGBA{0, 200, 90, 255}})
	for i := range palette.Pix {
		palette.Pix[i] = uint8(i % 3)
	}
	deep := drawn(image.NewNRGBA64(size), 6)
	for name, p := range map[string]image.Image{"rgb": rgb(1, 5, 7), "transparent": half, "palette": palette, "16 bits": deep,
		"grey": grey(2, 5, 7), "grey of 16 bits": drawn(image.NewGray16(size), 3)} {
		for _, colour := range []string{ColorRGB, ColorGrey} {
			channels := map[string]int{ColorRGB: 3, ColorGrey: 1}[colour]
			train, _, _, err := ReadPictures(folderOf(t, map[string][]byte{"a/p.png": pngOf(p)}), "", Options{Color: colour}, files.New(0))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			plain := p
			if name == "transparent" || name == "palette" { // what image.At premultiplies loses digits
				opaque := image.NewRGBA(size)
				for y := range 5 {
					for x := range 7 {
						c := color.NRGBAModel.Convert(p.At(x, y)).(color.NRGBA)
						if q, ok := p.(*image.NRGBA); ok {
							c = q.NRGBAAt(x, y)
						} else {
							c = palette.Palette[palette.ColorIndexAt(x, y)].(color.NRGBA)
						}
						opaque.SetRGBA(x, y, color.RGBA{c.R, c.G, c.B, 255})
					}
				}
				plain = opaque
			}
			if want := planesOf(plain, channels); !slices.Equal(train.data, want) {
				t.Errorf("%s as %s: %v, want %v", name, colour, train.data, want)
			}
		}
	}
}

// JPEG is within a few units of what was written, in colour and in grey.
func TestJPEG(t *testing.T) {
	smooth := image.NewRGBA(image.Rect(0, 0, 32, 24))
	for y := range 24 {
		for x := range 32 {
			smooth.SetRGBA(x, y, color.RGBA{uint8(8 * x), uint8(10 * y), 100, 255})
		}
	}
	flat := image.NewGray(smooth.Bounds())
	for i := range flat.Pix {
		flat.Pix[i] = uint8(i % 32 * 8)
	}
	for channels, p := range map[int]image.Image{3: smooth, 1: flat} {
		train, _, _, err := ReadPictures(folderOf(t, map[string][]byte{"a/p.jpg": jpegOf(p)}), "", Options{}, files.New(0))
		if err != nil || train.Shape() != (Shape{channels, 24, 32}) {
			t.Fatalf("%d channels: %v", channels, err)
		}
		for i, want := range planesOf(p, channels) {
			if d := int(train.data[i]) - int(want); d > 16 || d < -16 {
				t.Fatalf("%d channels: value %d is %d, want about %d", channels, i, train.data[i], want)
			}
		}
	}
}

// Pictures of one colour stay so at any size, and of two halves each keeps its own, whichever of the sizes is given.
func TestSizesOfPictures(t *testing.T) {
	halves := func(height, width int) image.Image {
		p := image.NewGray(image.Rect(0, 0, width, height))
		for i := range p.Pix {
			if i%width >= width/2 {
				p.Pix[i] = 200
			}
		}
		return p
	}
	for _, c := range []struct {
		o             Options
		height, width int // of the picture
		want          Shape
	}{
		{Options{Resize: [2]int{8, 8}}, 20, 40, Shape{1, 8, 8}}, {Options{Resize: [2]int{30, 60}}, 6, 10, Shape{1, 30, 60}},
		{Options{Resize: [2]int{10}}, 20, 40, Shape{1, 10, 20}}, {Options{Resize: [2]int{10}}, 60, 40, Shape{1, 15, 10}},
		{Options{Resize: [2]int{10}, Crop: [2]int{8, 8}}, 20, 40, Shape{1, 8, 8}}, {Options{Crop: [2]int{6, 12}}, 20, 40, Shape{1, 6, 12}},
	} {
		dir := folderOf(t, map[string][]byte{"a/p.png": pngOf(halves(c.height, c.width))})
		train, _, _, err := ReadPictures(dir, "", c.o, files.New(0))
		if err != nil || train.Shape() != c.want {
			t.Fatalf("%+v: %v, shape %v, want %v", c.o, err, train, c.want)
		}
		for i, v := range train.data {
			switch x := i % c.want.Width; {
			case x < c.want.Width/2-4 && v > 2, x > c.want.Width/2+3 && v < 198 || v > 200:
				t.Fatalf("%+v: column %d has %d of a picture whose left half is 0 and whose right half 200", c.o, x, v)
			}
		}
	}
}

// Means and deviations are those of the training pictures, and the test pictures follow.
func TestNormalizedPictures(t *testing.T) {
	dir := folderOf(t, map[string][]byte{"train/a/1.png": pngOf(rgb(1, 9, 9)), "train/b/2.png": pngOf(rgb(2, 9, 9)),
		"test/a/3.png": pngOf(rgb(1, 9, 9))})
	train, test, _, err := ReadPictures(dir, "", Options{Normalize: true}, files.New(0))
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, 2*243), make([]int32, 2)
	train.Fill(x, y, []int32{0, 1})
	for c := range 3 {
		var sum, squares float64
		for _, row := range []int{0, 1} {
			for _, v := range x[row*243+c*81:][:81] {
				sum, squares = sum+float64(v), squares+float64(v)*float64(v)
			}
		}
		if sum > 1e-3 || sum < -1e-3 || squares/162 > 1.0001 || squares/162 < 0.9999 {
			t.Errorf("channel %d has the sum %v and the mean square %v", c, sum, squares/162)
		}
	}
	again := make([]float32, 243)
	if test.Fill(again, y, []int32{0}); !slices.Equal(again, x[:243]) {
		t.Error("the same picture has other values in the test part")
	}
}

// What is wrong is named with its file and with what to do: the first one of several, whichever was decoded first.
func TestBadPictures(t *testing.T) {
	good := pngOf(rgb(1, 4, 4))
	var animated bytes.Buffer
	animated.Write(good[:33]) // the header, and the chunk of an animation behind it
	animated.Write([]byte{0, 0, 0, 8, 'a', 'c', 'T', 'L', 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0})
	animated.Write(good[33:])
	bomb := bytes.Clone(good)
	copy(bomb[16:], []byte{0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff})
	var moving bytes.Buffer
	if err := gif.Encode(&moving, rgb(1, 4, 4), nil); err != nil {
		t.Fatal(err)
	}
	// a header of JPEG with four components, as scanners for printing write it
	cmyk := []byte("\xff\xd8\xff\xc0\x00\x14\x08\x00\x04\x00\x04\x04\x01\x11\x00\x02\x11\x00\x03\x11\x00\x04\x11\x00\xff\xda\x00\x08")
	for name, c := range map[string]struct {
		all  map[string][]byte
		path string
		o    Options
		want string
	}{
		"no folder":   {nil, "none", Options{}, "none does not exist; set images needs a folder with a folder for each class"},
		"no pictures": {map[string][]byte{"a/x.txt": good}, "", Options{}, "no picture (.png, .jpg, .jpeg) in a folder of a class"},
		"no classes":  {map[string][]byte{"x.png": good}, "", Options{}, "the picture x.png is in no folder of a class"},
		"empty":       {map[string][]byte{"a/x.png": nil}, "", Options{}, "a/x.png: it is empty"},
		"text": {map[string][]byte{"a/x.png": []byte("hello there")}, "", Options{},
			`a/x.png: it is no picture of PNG or JPEG: it begins with "hello th"`},
		"gif named png": {map[string][]byte{"a/x.png": moving.Bytes()}, "", Options{},
			"a/x.png: it is of GIF, which is not read: write it as PNG"},
		"webp":     {map[string][]byte{"a/x.webp": good}, "", Options{}, "a/x.webp is a picture in the form webp, which is not read"},
		"cut":      {map[string][]byte{"a/x.png": good[:50]}, "", Options{}, "a/x.png: it is damaged or cut short"},
		"cut jpeg": {map[string][]byte{"a/x.jpg": jpegOf(rgb(1, 40, 40))[:700]}, "", Options{}, "a/x.jpg: it is damaged or cut short"},
		"animated": {map[string][]byte{"a/x.png": animated.Bytes()}, "", Options{}, "a/x.png: it is an animated PNG"},
		"bomb":     {map[string][]byte{"a/x.png": bomb}, "", Options{}, "a/x.png: it is damaged or cut short"},
		"cmyk":     {map[string][]byte{"a/x.jpg": cmyk}, "", Options{}, "its colours are CMYK"},
		"sizes": {map[string][]byte{"a/x.png": good, "a/y.png": pngOf(rgb(1, 4, 5))}, "", Options{},
			"a/y.png: it has 4 x 5 pixels, and the first picture 4 x 4: set data.pictures.resize: [4, 4]"},
		"colours": {map[string][]byte{"a/x.png": good, "a/y.png": pngOf(grey(1, 4, 4))}, "", Options{},
			"a/y.png: it is grey, and the first picture in colour: set data.pictures.color: rgb or grey"},
		"small for crop": {map[string][]byte{"a/x.png": good}, "", Options{Crop: [2]int{5, 5}},
			"fewer than data.pictures.crop, 5 x 5: set data.pictures.resize"},
		"several": {map[string][]byte{"a/w.png": good, "a/x.png": good[:60], "b/1.png": good[:50], "b/2.png": nil}, "", Options{},
			"a/x.png: it is damaged or cut short"},
		"two tests": {map[string][]byte{"train/a/x.png": good, "val/a/x.png": good, "test/a/x.png": good}, "", Options{},
			"has the folders test, val beside train: name one as data.test"},
		"one part": {map[string][]byte{"train/a/x.png": good}, "", Options{},
			"has the folder train and no class: give that folder as data.path"},
		"unknown class": {map[string][]byte{"train/a/x.png": good, "test/b/x.png": good}, "", Options{},
			`folder b: class "b" is not in the training file`},
		"a third folder": {map[string][]byte{"train/a/x.png": good, "val/a/x.png": good, "meta/x.txt": nil}, "", Options{},
			"has the folders train and val beside meta: are these parts, or classes?"},
		"thin": {map[string][]byte{"a/x.png": pngOf(rgb(1, 1, 2000))}, "", Options{Resize: [2]int{256}},
			"and would have 256 x 512000 after data.pictures.resize"},
		"targets of folders": {map[string][]byte{"a/x.png": good}, "", Options{Regress: true}, "folders are classes, and data.task is regress"},
		"split beside": {map[string][]byte{"train/a/x.png": good, "test/a/x.png": good}, "", Options{Split: 0.5},
			"has test pictures: leave out data.split"},
		"list, missing": {map[string][]byte{"l.csv": []byte("x.png,1\n")}, "l.csv", Options{}, "l.csv:1: there is no picture \"x.png\" in"},
		"list, outside": {map[string][]byte{"l.csv": []byte("../x.png,1\n")}, "l.csv", Options{}, "is not named from the folder of"},
		"list, columns": {map[string][]byte{"x.png": good, "l.csv": []byte("x.png,1,2\n")}, "l.csv", Options{}, "l.csv:1: 3 values, want 2"},
		"list, label":   {map[string][]byte{"x.png": good, "l.csv": []byte("x.png,\n")}, "l.csv", Options{}, "l.csv:1: the class is missing"},
		"list, float": {map[string][]byte{"x.png": good, "l.csv": []byte("x.png,1.5\n")}, "l.csv", Options{},
			"if it is a number to predict, set data.task: regress"},
		"list, target": {map[string][]byte{"x.png": good, "l.csv": []byte("x.png,old\n")}, "l.csv", Options{Regress: true},
			`l.csv:1: value "old" is not a number`},
		"memory": {map[string][]byte{"a/x.png": pngOf(rgb(1, 400, 400))}, "", Options{}, "or make them smaller by data.pictures.resize"},
	} {
		dir := folderOf(t, c.all)
		memory := int64(1 << 18)
		_, _, _, err := ReadPictures(filepath.Join(dir, c.path), "", c.o, files.New(memory))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "data: ") && name != "memory" {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	dir := folderOf(t, map[string][]byte{"set/a/x.png": good, "out.png": good})
	if err := os.Symlink("../../out.png", filepath.Join(dir, "set/a/y.png")); err != nil {
		t.Fatal(err)
	}
	_, _, _, err := ReadPictures(filepath.Join(dir, "set"), "", Options{}, files.New(0))
	if err == nil || !strings.Contains(err.Error(), "y.png: it is a link out of the folder") {
		t.Errorf("a link out of the folder: %v", err)
	}
	dir = folderOf(t, map[string][]byte{"set/a/x.png": good, "other/1.png": good})
	if err := os.Symlink("../other", filepath.Join(dir, "set/c.v2")); err != nil {
		t.Fatal(err)
	}
	_, _, _, err = ReadPictures(filepath.Join(dir, "set"), "", Options{}, files.New(0))
	if err == nil || !strings.Contains(err.Error(), "c.v2 is a link to a folder, which is not followed") {
		t.Errorf("a class that is a link: %v", err)
	}
}

// FuzzPicture: what is accepted has as many bytes as its shape, and nothing panics or takes more memory than pictures may.
func FuzzPicture(f *testing.F) {
	f.Add(pngOf(rgb(1, 3, 4)))
	f.Add(pngOf(grey(1, 3, 4)))
	f.Add(jpegOf(rgb(1, 9, 9)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if config, _, err := image.DecodeConfig(bytes.NewReader(b)); err == nil && config.Width*config.Height > 1<<20 {
			t.Skip("its memory is bounded, and large")
		}
		p, err := decode(b)
		if err != nil {
			return
		}
		d := &decoder{Options: &Options{Resize: [2]int{5, 6}}}
		if values, err := d.row(p, nil); err != nil || len(values) != d.shape.Values() {
			t.Errorf("%d values of %v, %v", len(values), d.shape, err)
		}
	})
}

// BenchmarkPictures decodes the pictures of a folder, and makes them 224 x 224.
func BenchmarkPictures(b *testing.B) {
	dir := os.Getenv("FLUENTPS_TEST_PICTURES")
	if dir == "" {
		b.Skip("FLUENTPS_TEST_PICTURES names no folder")
	}
	n := 0
	for b.Loop() {
		train, _, _, err := ReadPictures(dir, "", Options{Resize: [2]int{224, 224}}, files.New(0))
		if err != nil {
			b.Fatal(err)
		}
		n += train.Rows()
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "pictures/s")
}
