package externaltest

import (
	"fmt"
	"strings"
)

// Draws and Forgets are modes whose gradients depend on random numbers. The state of Draws is how many were drawn; Forgets keeps none.
const (
	Draws   = "draws"
	Forgets = "forgets"
)

// keeps are the flags of BOUND.
func (c *child) keeps() byte {
	if c.mode == Draws || strings.HasPrefix(c.mode, "state") {
		return 1
	}
	return 0
}

// draw changes gradients, but not the sums of statistics, at random.
func (c *child) draw(grads [][]float32) {
	if c.mode != Draws && c.mode != Forgets {
		return
	}
	c.drawn++
	by := 1 + 0.5*noise(c.drawn, 9)
	for i, p := range Shapes().Params() {
		for k := range grads[i] {
			if !p.Stat {
				grads[i][k] = float32(float64(grads[i][k]) * by)
			}
		}
	}
}

// state answers STATE. Its text is no multiple of four bytes long.
func (c *child) state() {
	text := fmt.Sprintf("drawn %05d", c.drawn)
	m := message{kind: msgState, flags: c.asked.flags, a: c.asked.a, b: uint64(len(text))}
	switch region := c.regions[c.asked.a]; c.asked.flags {
	case 0:
		if c.at(atSize) {
			return
		}
	case 1:
		if copy(region, text); c.at(atSave) {
			return
		}
	case 2:
		if _, err := fmt.Sscanf(string(region[:c.asked.b]), "drawn %05d", &c.drawn); err != nil {
			c.fail(fmt.Sprintf("STATE %q: %v", region[:c.asked.b], err))
		}
		fmt.Println("resumes behind", c.drawn)
		if c.at(atRestore) {
			return
		}
	}
	c.say(m)
}
