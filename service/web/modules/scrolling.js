// The panes of a long text scroll together: as far as one has been read, the other is shown.

/** @param {HTMLElement} left  @param {HTMLElement} right */
export function scrollTogether(left, right) {
  let moved = null; // the pane that followed the other, whose own event is still to come
  let place = 0; // to which it was moved: a reader may have scrolled it since
  const follow = (leader, follower) => {
    if (moved === leader && Math.round(leader.scrollTop) === place) moved = null;
    else {
      const share = leader.scrollTop / Math.max(1, leader.scrollHeight - leader.clientHeight);
      place = Math.round(share * (follower.scrollHeight - follower.clientHeight));
      if (place === Math.round(follower.scrollTop)) return;
      moved = follower;
      follower.scrollTop = place;
    }
  };
  left.addEventListener("scroll", () => follow(left, right));
  right.addEventListener("scroll", () => follow(right, left));
}
