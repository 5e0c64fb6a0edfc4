package main

import (
	"math"
	"os"

	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/images"
)

// pixels writes the bytes of the first picture of a folder to standard output, plane by plane.
func pixels(folder, color string) error {
	set, err := dataset.Load(dataset.Spec{Set: "images", Path: folder, Pictures: images.Options{Color: color}})
	if err != nil {
		return err
	}
	x, y := make([]float32, set.Train.Cols()), make([]int32, 1)
	set.Train.Fill(x, y, []int32{0})
	values := make([]byte, len(x))
	for i, v := range x {
		values[i] = byte(math.Round(float64(v) * 255))
	}
	_, err = os.Stdout.Write(values)
	return err
}
