package network

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// rateForm is a number with a unit of bits or bytes per second.
var rateForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([kKMGT]?)(bit|B)(/s)?$`)

var rateUnits = map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}

// ParseRate reads a rate in bits (200Mbit or 10 Gbit/s) or in bytes (25MB/s). The result is in bytes per second.
func ParseRate(text string) (float64, error) {
	m := rateForm.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is not a rate; write it with its unit, as in 200Mbit, 10Gbit or 25MB", text)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	v *= rateUnits[m[2]]
	if m[3] == "bit" {
		v /= 8
	}
	if err != nil || v < 1 || v > 1e15 {
		return 0, fmt.Errorf("%q is not a rate from 8bit to 8000Tbit", text)
	}
	return v, nil
}

// ParseRates reads the rate of all cards, and those of single hosts, as in 10Gbit,node3=1Gbit. It fails if a host is not in hosts, or if a
// host has no rate or two.
func ParseRates(text string, hosts []string) (Rates, error) {
	r := Rates{Of: map[string]float64{}}
	cards, index := newCards(hosts)
	for _, item := range strings.Split(text, ",") {
		host, rate, one := strings.Cut(strings.TrimSpace(item), "=")
		if !one {
			rate = host
		}
		v, err := ParseRate(rate)
		switch {
		case err != nil:
			return r, err
		case !one && r.All > 0:
			return r, fmt.Errorf("%q has two rates for all hosts; name the host of the other rate, as in node3=1Gbit", text)
		case !one:
			r.All = v
		case r.Of[host] > 0:
			return r, fmt.Errorf("%q has two rates for host %s", text, host)
		default:
			if _, known := index[host]; !known {
				return r, fmt.Errorf("%q: there is no host %s; the hosts are %s", text, host, names(cards))
			}
			r.Of[host] = v
		}
	}
	if r.All == 0 && len(r.Of) < len(cards) {
		return r, fmt.Errorf("%q: the hosts that it does not name need a rate, as in 10Gbit,node3=1Gbit", text)
	}
	return r, nil
}

// FormatRate writes a rate of bytes per second in bits per second.
func FormatRate(rate float64) string {
	bits := 8 * rate
	for _, u := range []string{"bit/s", "kbit/s", "Mbit/s", "Gbit/s"} {
		if bits < 1000 {
			return strconv.FormatFloat(math.Round(bits*100)/100, 'f', -1, 64) + " " + u
		}
		bits /= 1000
	}
	return strconv.FormatFloat(math.Round(bits*100)/100, 'f', -1, 64) + " Tbit/s"
}

func names(cards []Card) string {
	const shown = 8
	var list []string
	for _, c := range cards {
		list = append(list, c.Host)
	}
	if len(list) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
	}
	return strings.Join(list, ", ")
}
