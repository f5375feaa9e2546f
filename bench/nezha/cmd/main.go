// Command cmd runs the Nezha benchmark alone: go run ./bench/nezha/cmd DIR [given|found] [text in the case's name].
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"inquest/bench/nezha"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: cmd DIR [given|found|both] [text]")
		os.Exit(2)
	}
	opt := nezha.Options{}
	if len(os.Args) > 2 {
		opt.Given, opt.Found = os.Args[2] == "given", os.Args[2] == "found"
	}
	if len(os.Args) > 3 {
		opt.Cases = func(c nezha.Case) bool { return strings.Contains(c.ID(), os.Args[3]) }
	}
	res, err := nezha.Run(context.Background(), os.Args[1], opt)
	if err == nil {
		err = res.WriteText(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
