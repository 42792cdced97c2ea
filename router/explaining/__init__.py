"""Why a request was decided as it was: what each rule read and answered, and what that made of every decision."""
