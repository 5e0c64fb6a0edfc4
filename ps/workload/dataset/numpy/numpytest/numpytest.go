// Package numpytest writes files of NumPy for tests.
package numpytest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// File is an .npy file with elements of a type such as "<f4", of which data has the bytes.
func File(version byte, descr string, fortran bool, shape []int, data []byte) []byte {
	dims := ""
	for _, d := range shape {
		dims += fmt.Sprintf("%d, ", d)
	}
	if len(shape) > 1 {
		dims = strings.TrimSuffix(dims, ", ")
	}
	order := "False"
	if fortran {
		order = "True"
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, order, strings.TrimSuffix(dims, " "))
	return Raw(version, text, data)
}

// Raw is an .npy file with that text in its header, padded as NumPy does.
func Raw(version byte, text string, data []byte) []byte {
	b := append([]byte("\x93NUMPY"), version, 0)
	prefix := 10
	if version > 1 {
		prefix = 12
	}
	text += strings.Repeat(" ", 63-(prefix+len(text))%64) + "\n"
	if version > 1 {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	} else {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	}
	return append(append(b, text...), data...)
}

// Entry is an array of an archive.
type Entry struct {
	Name string
	File []byte // .npy
}

// Archive is an .npz file: packed as by numpy.savez_compressed, or stored as by numpy.savez.
func Archive(t testing.TB, packed bool, entries ...Entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		method := zip.Store
		if packed {
			method = zip.Deflate
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: e.Name + ".npy", Method: method})
		if err == nil {
			_, err = w.Write(e.File)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Float32s are the bytes of little-endian numbers, Bytes of any.
func Float32s(v ...float32) []byte { return Bytes(binary.LittleEndian, v) }

// Bytes are the bytes of a slice of numbers.
func Bytes(order binary.ByteOrder, v any) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, order, v); err != nil {
		panic(err)
	}
	return b.Bytes()
}
