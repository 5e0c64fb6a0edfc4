package images

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/text"
)

// picture is a file with a picture, and what it is labelled with.
type picture struct {
	name  string // below the root, with slashes
	label string
	place string // where the label is from, for messages
}

// part is the pictures of the training part, or of the test part.
type part struct {
	root string // the folder of the pictures
	list string // the file with their names; "": folders are classes
	all  []picture
}

// partNames are the folders that other programs make of a set: that of training, and those of the test.
var (
	trainNames = []string{"train", "training"}
	testNames  = []string{"test", "testing", "val", "valid", "validation"}
)

// extensions are those of pictures, in small letters, and what is not read.
var (
	extensions = []string{".png", ".jpg", ".jpeg"}
	unread     = []string{".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif", ".jxl", ".jp2", ".ppm", ".pgm"}
)

// partsOf lists the pictures of a set. A folder has a folder for each class, or a folder of such folders for each part.
func partsOf(where, test string, in *files.Reading) (parts []part, err error) {
	info, err := os.Stat(where)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, files.Missing(fmt.Sprintf("data: %s does not exist; set images needs a folder with a folder for each class, or a file of "+
			"csv with the names of pictures and their classes", where))
	}
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if test != "" {
		for _, p := range []string{where, test} {
			one, err := partOf(p, in)
			if err != nil {
				return nil, err
			}
			parts = append(parts, one)
		}
		return parts, nil
	}
	if info.IsDir() {
		train, tests, err := split(where)
		switch {
		case err != nil:
			return nil, err
		case train != "" && len(tests) > 1:
			return nil, fmt.Errorf("data: %s has the folders %s beside %s: name one as data.test", where, strings.Join(tests, ", "), train)
		case train != "" && len(tests) == 1:
			in.Found = append(in.Found, fmt.Sprintf("%s: %s is for training, %s for the test", where, train, tests[0]))
			return partsOf(filepath.Join(where, train), filepath.Join(where, tests[0]), in)
		case train != "":
			return nil, fmt.Errorf("data: %s has the folder %s and no class: give that folder as data.path", where, train)
		}
	}
	one, err := partOf(where, in)
	return []part{one}, err
}

// split finds the folders of parts, if there is nothing else: a class may have any name.
func split(folder string) (train string, tests []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", nil, fmt.Errorf("data: %w", err)
	}
	var others []string
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		switch {
		case !e.IsDir() || strings.HasPrefix(name, "."):
		case slices.Contains(trainNames, name):
			train = e.Name()
		case slices.Contains(testNames, name):
			tests = append(tests, e.Name())
		default:
			others = append(others, e.Name())
		}
	}
	switch {
	case len(others) == 0:
		return train, tests, nil
	case train != "" && len(tests) > 0:
		return "", nil, fmt.Errorf("data: %s has the folders %s and %s beside %s: are these parts, or classes? name the parts as data.path and "+
			"data.test, or move the other folders away", folder, train, tests[0], others[0])
	}
	return "", nil, nil
}

// partOf lists the pictures of a folder, or those that a file names.
func partOf(where string, in *files.Reading) (part, error) {
	info, err := os.Stat(where)
	if errors.Is(err, fs.ErrNotExist) {
		return part{}, files.Missing(fmt.Sprintf("data: %s does not exist; check path and test of the data set", where))
	}
	if err != nil {
		return part{}, fmt.Errorf("data: %w", err)
	}
	if !info.IsDir() {
		return listed(where, in)
	}
	p := part{root: where}
	others, odd := 0, ""
	err = fs.WalkDir(os.DirFS(where), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if strings.HasPrefix(e.Name(), ".") { // as programs leave them behind
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		class, _, below := strings.Cut(name, "/")
		ext := strings.ToLower(path.Ext(name))
		switch {
		case e.IsDir():
		case e.Type()&fs.ModeSymlink != 0 && files.IsFolder(filepath.Join(where, filepath.FromSlash(name))):
			return fmt.Errorf("%s is a link to a folder, which is not followed: give the folder that has the pictures, or copy them", name)
		case slices.Contains(extensions, ext) && !below:
			return fmt.Errorf("the picture %s is in no folder of a class; set images takes a folder for each class, or a file of csv with "+
				"the names of pictures and their classes", name)
		case slices.Contains(extensions, ext):
			p.all = append(p.all, picture{name: name, label: class, place: "folder " + class})
		case slices.Contains(unread, ext):
			return fmt.Errorf("%s is a picture in the form %s, which is not read: write it as PNG or JPEG, as in PIL.Image.open(FILE).save('x.png')",
				name, ext[1:])
		default:
			others++
			odd = name
		}
		return nil
	})
	if err != nil {
		return p, fmt.Errorf("data: %s: %w", where, err)
	}
	if others > 0 {
		in.Found = append(in.Found, fmt.Sprintf("%s: %s left out, such as %s", where, text.Counted(others, "other file"), odd))
	}
	if len(p.all) == 0 {
		return p, fmt.Errorf("data: %s: no picture (%s) in a folder of a class", where, strings.Join(extensions, ", "))
	}
	return p, nil
}

// listed reads lines of a name of a picture, which begins at the folder of the file, and a label.
func listed(where string, in *files.Reading) (p part, err error) {
	p = part{root: filepath.Dir(where), list: where}
	err = in.Read(where, files.TextHint, func(src *files.Source) error {
		r := csv.NewReader(src)
		r.Comment, r.FieldsPerRecord, r.TrimLeadingSpace = '#', -1, true
		for isFirst := true; ; isFirst = false {
			record, err := r.Read()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return fmt.Errorf("data: %s: %w", where, err)
			}
			line, _ := r.FieldPos(0)
			place := fmt.Sprintf("%s:%d", where, line)
			if len(record) != 2 {
				return fmt.Errorf("data: %s: %s, want 2 with a comma between them: the name of a picture and its label", place,
					text.Counted(len(record), "value"))
			}
			for _, field := range record {
				if err := text.CheckUTF8("value", field); err != nil {
					return fmt.Errorf("data: %s: %w", place, err)
				}
			}
			name := path.Clean(filepath.ToSlash(strings.TrimSpace(strings.TrimPrefix(record[0], "\ufeff"))))
			name, err = p.found(name)
			if err != nil && isFirst && !slices.Contains(extensions, strings.ToLower(path.Ext(name))) {
				in.Found = append(in.Found, fmt.Sprintf("%s: the first line, %s, names no picture, and is left out as a header", where,
					files.Clip(strings.Join(record, ","))))
				continue
			}
			if err != nil {
				return fmt.Errorf("data: %s: %w", place, err)
			}
			p.all = append(p.all, picture{name: name, label: strings.TrimSpace(record[1]), place: place})
		}
	})
	if err == nil && len(p.all) == 0 {
		err = fmt.Errorf("data: %s: no rows", where)
	}
	return p, err
}

// found is the name of a picture that is named with or without its extension.
func (p *part) found(name string) (string, error) {
	if !filepath.IsLocal(name) {
		return name, fmt.Errorf("the picture %s is not named from the folder of %s on; write names such as train/1.png", files.Clip(name), p.list)
	}
	for _, ext := range append([]string{""}, extensions...) {
		if files.IsFile(filepath.Join(p.root, name+ext)) {
			return name + ext, nil
		}
	}
	return name, fmt.Errorf("there is no picture %s in %s", files.Clip(name), p.root)
}

// labels turns the labels of parts into classes, or into the bits of targets. It returns the number of classes, and their names if they are
// not their numbers.
func labels(parts []part, o *Options, in *files.Reading) (y [][]int32, count int, names []string, err error) {
	known := &classes.Labels{}
	if o.Regress && parts[0].list == "" {
		return nil, 0, nil, fmt.Errorf("data: %s: folders are classes, and data.task is regress: give a file of csv with names of pictures and "+
			"numbers as data.path, or leave out data.task", parts[0].root)
	}
	for at, p := range parts {
		of := make([]int32, len(p.all))
		for i, one := range p.all {
			if of[i], err = label(one.label, known, o, at > 0); err != nil {
				return nil, 0, nil, fmt.Errorf("data: %s: %w", one.place, err)
			}
		}
		y = append(y, of)
	}
	if o.Regress {
		return y, 0, nil, nil
	}
	if len(y) == 1 {
		y = append(y, nil)
	}
	where := cmp.Or(parts[0].list, parts[0].root)
	if count, names, err = known.Settle(in, where, y[0], y[1], o.Classes); err != nil {
		return nil, 0, nil, err
	}
	listed := names
	for k := range count {
		if names == nil {
			listed = append(listed, strconv.Itoa(k))
		}
	}
	in.Found = append(in.Found, fmt.Sprintf("%s: %d classes: %s", where, count, classes.List(listed)))
	return y, count, names, nil
}

// label is the class of a picture as its folder or file has it, or the bits of its target.
func label(field string, known *classes.Labels, o *Options, isTest bool) (int32, error) {
	if o.Regress {
		if text.IsMissing(field) {
			return 0, fmt.Errorf("the target is missing (%s); remove the row", files.Clip(field))
		}
		v, err := text.ParseValue(field, 0)
		return int32(math.Float32bits(v)), err
	}
	v, isNumber := text.Decimal(field)
	switch {
	case isNumber && v != float64(int32(v)):
		return 0, fmt.Errorf("class %s is not a whole number; if it is a number to predict, set data.task: regress", files.Clip(field))
	case isNumber && (v >= classes.Max || v <= -classes.Max):
		return 0, fmt.Errorf("class %s is out of range, must be %d to %d", files.Clip(field), 1-classes.Max, classes.Max-1)
	case isNumber:
		return int32(v), known.Admit(false, field)
	case text.IsMissing(field) && field != "none" && field != "missing":
		return 0, fmt.Errorf("the class is missing (%s); remove the row", files.Clip(field))
	}
	if err := known.Admit(true, field); err != nil {
		return 0, err
	}
	return known.Text(field, o.Classes, isTest)
}
