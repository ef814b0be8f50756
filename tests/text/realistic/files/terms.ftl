-app = Programm
    .gender = neuter
    .case = Nominative
use = The { -app(case: "genitive") } is open
key.with = junk line
ok = Fine
