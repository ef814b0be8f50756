gender =
    { $g ->
        [male] He has { $n ->
            [one] one dog
           *[other] { $n } dogs
        }
       *[other] They are here
    } today.
