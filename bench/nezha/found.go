package nezha

import "context"

func runFound(ctx context.Context, src *Source, date string, opt Options, res *Result) error {
	return nil
}
