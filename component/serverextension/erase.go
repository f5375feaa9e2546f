package serverextension

import (
	"context"

	"inquest/api/apitype"
	"inquest/recorder"
	"inquest/store/payload"
)

// eraser answers erasures in the API's words.
type eraser struct{ rec *recorder.Recorder }

// EraseUser implements [api.Eraser].
func (e eraser) EraseUser(ctx context.Context, user string) (apitype.ErasedPayloads, error) {
	gone, err := e.rec.EraseUser(ctx, user)
	if err != nil {
		return apitype.ErasedPayloads{}, err
	}
	out := apitype.ErasedPayloads{
		Removed: texts(gone.Payloads.Removed), Shared: texts(gone.Payloads.Shared), Unreadable: texts(gone.Payloads.Unreadable),
		References: gone.Payloads.References, Bytes: gone.Payloads.Bytes,
		DeadLetters: gone.Letters, Remains: []apitype.Remains{},
	}
	for _, r := range gone.Remains {
		out.Remains = append(out.Remains, apitype.Remains{What: r.What, Count: r.Count, Until: r.Until, Detail: r.Detail})
	}
	return out, nil
}

func texts(sums []payload.Sum) []string {
	out := make([]string, len(sums))
	for i, sum := range sums {
		out[i] = sum.String()
	}
	return out
}
